/* Becomes user 0. */
#include "guest.h"

static int attempt(void) {
  return setresuid(0, 0, 0);
}
