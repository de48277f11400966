/* Reads the kernel's log. */
#include "guest.h"

static int attempt(void) {
  return opens("/dev/kmsg", O_RDONLY) && let_in(syscall(SYS_syslog, 3, buffer, 100)) ? -1 : 0;
}
