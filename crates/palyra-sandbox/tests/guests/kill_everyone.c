/* Kills whatever it can; the test looks what is left. */
#include "guest.h"

static int attempt(void) {
  if (fork() == 0) { setpgid(0, 0); kill(-1, SIGKILL); _exit(0); }
  usleep(100000);
  errno = EPERM;
  return kill(outsider, 0);
}
