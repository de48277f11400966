/* Watches every file access of the host. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_fanotify_init, 0, 0));
}
