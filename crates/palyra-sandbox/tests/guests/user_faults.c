/* Stops the kernel in the middle of a copy. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_userfaultfd, 1));
}
