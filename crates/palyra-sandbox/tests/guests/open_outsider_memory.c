/* Opens the memory of a process of the host. */
#include "guest.h"

static int attempt(void) {
  snprintf(buffer, sizeof buffer, "/proc/%d/mem", outsider);
  return opens(buffer, O_RDWR);
}
