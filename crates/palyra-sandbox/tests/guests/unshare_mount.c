/* Makes a namespace of mounts. */
#include "guest.h"

static int attempt(void) {
  return unshare(CLONE_NEWNS);
}
