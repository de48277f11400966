/* Reads the variables of its parent. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/environ", getppid());
  return reads(strdup(buffer));
}
