/* Makes system calls without making them. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_io_uring_setup, 4, buffer));
}
