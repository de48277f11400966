/* Watches the processor. */
#include "guest.h"

static int attempt(void) {
  uint32_t how[32] = {1, 128};
  return let_in(syscall(SYS_perf_event_open, how, 0, -1, -1, 0));
}
