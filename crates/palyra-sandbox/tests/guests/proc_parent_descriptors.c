/* Opens what the parent has open. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/fd", getppid());
  return opendir(buffer) ? 0 : -1;
}
