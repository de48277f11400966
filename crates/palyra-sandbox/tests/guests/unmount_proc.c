/* Uncovers what lies below a mount. */
#include "guest.h"

static int attempt(void) {
  return let_in(umount2("/proc", MNT_DETACH));
}
