/* Swaps to a file of its own. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_swapon, "swap", 0));
}
