/* Makes the first disk's device file. */
#include "guest.h"

static int attempt(void) {
  return mknod("disk", S_IFBLK | 0600, (8 << 8));
}
