/* Has the kernel execute a program at the next crash. */
#include "guest.h"

static int attempt(void) {
  return opens("/proc/sys/kernel/core_pattern", O_WRONLY);
}
