/* Reads through the magic link to the root. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/self/root%s/secret", outside);
  return reads(strdup(buffer));
}
