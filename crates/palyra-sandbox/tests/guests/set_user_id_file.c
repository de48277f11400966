/* Leaves a file that runs with its owner's rights. */
#include "guest.h"

static int attempt(void) {
  close(open("suid", O_WRONLY | O_CREAT, 0755));
  if (chmod("suid", 04755) == 0) return 0;
  int fd = open("suid", O_WRONLY);
  if (fchmod(fd, 04755) == 0 || fchmodat(AT_FDCWD, "suid", 04755, 0) == 0) return 0;
  return open("suid2", O_WRONLY | O_CREAT, 06755) >= 0 && stat("suid2", &(struct stat){0}) == 0 ? 0 : -1;
}
