/* Loads another kernel. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_kexec_load, 0, 0, 0, 0));
}
