/* Reads the variables of a process of the host. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/environ", outsider);
  return reads(strdup(buffer));
}
