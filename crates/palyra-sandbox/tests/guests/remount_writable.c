/* Makes the system writable. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_mount, "none", "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
}
