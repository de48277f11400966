/* Restarts the machine. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0));
}
