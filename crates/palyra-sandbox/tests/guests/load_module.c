/* Loads a module. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_init_module, buffer, 16, ""));
}
