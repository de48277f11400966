/* Learns addresses of the kernel by comparing. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_kcmp, getpid(), outsider, 0, 1, 1));
}
