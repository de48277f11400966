/* Looks at what runs on the host. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/cmdline", outsider);
  return reads(strdup(buffer));
}
