/* Talks to hardware. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_iopl, 3));
}
