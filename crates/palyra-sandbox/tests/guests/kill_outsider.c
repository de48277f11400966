/* Kills a process of the host. */
#include "guest.h"

static int attempt(void) {
  return kill(outsider, SIGKILL);
}
