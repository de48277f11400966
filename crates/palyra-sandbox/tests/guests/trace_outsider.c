/* Takes over a process of the host. */
#include "guest.h"

static int attempt(void) {
  return got(ptrace(PTRACE_SEIZE, outsider, 0, 0));
}
