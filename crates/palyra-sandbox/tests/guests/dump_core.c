/* Has the kernel write its memory somewhere. */
#include "guest.h"

static int attempt(void) {
  struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
  return setrlimit(RLIMIT_CORE, &most);
}
