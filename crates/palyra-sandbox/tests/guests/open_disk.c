/* Opens a disk of the host. */
#include "guest.h"

static int attempt(void) {
  return opens("/dev/vda", O_RDONLY) && opens("/dev/sda", O_RDONLY) && opens("/dev/nvme0n1", O_RDONLY) ? -1 : 0;
}
