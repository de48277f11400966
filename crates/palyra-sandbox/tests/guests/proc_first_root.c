/* Reads through the root of process 1. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/1/root%s/secret", outside);
  return reads(strdup(buffer));
}
