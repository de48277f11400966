/* Takes a capability. */
#include "guest.h"

static int attempt(void) {
  uint32_t head[2] = {0x20080522, 0}, data[6] = {1u << 21, 1u << 21, 0, 0, 0, 0};
  return got(syscall(SYS_capset, head, data));
}
