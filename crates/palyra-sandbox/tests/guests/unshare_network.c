/* Makes a namespace of the network. */
#include "guest.h"

static int attempt(void) {
  return unshare(CLONE_NEWNET);
}
