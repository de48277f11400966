/* Sets the clock. */
#include "guest.h"

static int attempt(void) {
  struct timespec then = {1, 0};
  return let_in(clock_settime(CLOCK_REALTIME, &then));
}
