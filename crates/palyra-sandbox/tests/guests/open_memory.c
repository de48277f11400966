/* Opens the machine's memory. */
#include "guest.h"

static int attempt(void) {
  return opens("/dev/mem", O_RDONLY) && opens("/proc/kcore", O_RDONLY) ? -1 : 0;
}
