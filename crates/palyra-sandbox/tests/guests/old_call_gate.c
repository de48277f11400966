/* Calls the kernel as a 32-bit program. */
#include "guest.h"

static int attempt(void) {
  long result;
  signed char pid_call = 20;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"((long)pid_call) : "memory", "r8", "r9", "r10", "r11");
  return got(result);
}
