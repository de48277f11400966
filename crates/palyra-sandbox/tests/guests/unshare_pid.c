/* Makes a namespace of processes. */
#include "guest.h"

static int attempt(void) {
  return unshare(CLONE_NEWPID);
}
