/* Reads through the root of a process of the host. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/root%s/secret", outsider, outside);
  return reads(strdup(buffer));
}
