/* Lifts its own protection through /proc. */
#include "guest.h"

static int attempt(void) {
  return opens("/proc/self/oom_score_adj", O_WRONLY);
}
