/* Changes the root. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_pivot_root, ".", "."));
}
