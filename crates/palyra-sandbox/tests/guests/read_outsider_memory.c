/* Reads the memory of a process of the host. */
#include "guest.h"

static int attempt(void) {
  struct iovec here = {buffer, 8}, there = {(void *)0x400000, 8};
  return let_in(syscall(SYS_process_vm_readv, outsider, &here, 1, &there, 1, 0));
}
