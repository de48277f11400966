/* Takes resources away from a process of the host. */
#include "guest.h"

static int attempt(void) {
  struct rlimit none = {1, 1};
  return got(syscall(SYS_prlimit64, outsider, RLIMIT_NOFILE, &none, NULL));
}
