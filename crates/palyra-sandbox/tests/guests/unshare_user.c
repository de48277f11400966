/* Makes a namespace of users. */
#include "guest.h"

static int attempt(void) {
  return unshare(CLONE_NEWUSER);
}
