/* Reads the session's keys. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_keyctl, 0, -3, 1));
}
