/* Climbs out through the magic link to the working directory. */
#include "guest.h"

static int attempt(void) {
  return reads("/proc/self/cwd/../secret");
}
