/* Presses the system request key. */
#include "guest.h"

static int attempt(void) {
  return opens("/proc/sysrq-trigger", O_WRONLY);
}
