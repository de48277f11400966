/* Forks with flags that no filter can see. */
#include "guest.h"

static int attempt(void) {
  uint64_t how[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
  long child = syscall(SYS_clone3, how, 64);
  if (child == 0) _exit(0);
  return got(child);
}
