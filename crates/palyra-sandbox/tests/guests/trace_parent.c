/* Takes over its parent. */
#include "guest.h"

static int attempt(void) {
  return got(ptrace(PTRACE_ATTACH, getppid(), 0, 0));
}
