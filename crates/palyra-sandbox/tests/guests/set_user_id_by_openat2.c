/* Makes such a file where no filter can see the mode. */
#include "guest.h"

static int attempt(void) {
  uint64_t how[3] = {O_WRONLY | O_CREAT, 04755, 0};
  return got(syscall(SYS_openat2, AT_FDCWD, "suid3", how, sizeof how));
}
