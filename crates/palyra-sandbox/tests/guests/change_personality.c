/* Makes all readable memory executable. */
#include "guest.h"

static int attempt(void) {
  return got(syscall(SYS_personality, 0x0400000));
}
