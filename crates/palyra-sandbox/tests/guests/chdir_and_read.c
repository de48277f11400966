/* Goes there first. */
#include "guest.h"

static int attempt(void) {
  if (chdir(outside)) return -1;
  return reads("secret");
}
