/* Raises its own limit of processes. */
#include "guest.h"

static int attempt(void) {
  struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
  return setrlimit(RLIMIT_NPROC, &most);
}
