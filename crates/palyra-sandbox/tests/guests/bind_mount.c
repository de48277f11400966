/* Mounts one directory over another. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_mount, "/", ".", NULL, MS_BIND | MS_REC, NULL));
}
