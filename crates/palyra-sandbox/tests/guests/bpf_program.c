/* Loads a program into the kernel. */
#include "guest.h"

static int attempt(void) {
  return let_in(syscall(SYS_bpf, 5, buffer, 128));
}
