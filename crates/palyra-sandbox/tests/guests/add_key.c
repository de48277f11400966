/* Puts a key into the kernel. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_add_key, "user", "x", "y", 1, -3));
}
