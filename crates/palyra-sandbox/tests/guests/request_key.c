/* Has the kernel execute its helper for keys. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_request_key, "user", "x", "y", -3));
}
