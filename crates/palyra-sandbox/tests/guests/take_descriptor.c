/* Takes a descriptor from a process of the host. */
#include "guest.h"

static int attempt(void) {
  int process = syscall(SYS_pidfd_open, outsider, 0);
  return let_in(syscall(SYS_pidfd_getfd, process, 1, 0));
}
