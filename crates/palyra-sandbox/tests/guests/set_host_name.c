/* Renames the host. */
#include "guest.h"

static int attempt(void) {
  return let_in(sethostname("evil", 4));
}
