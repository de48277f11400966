/* Kills its supervisor and is still alive a moment later. */
#include "guest.h"

static int attempt(void) {
  int parent = getppid();
  int result = kill(parent, SIGKILL);
  usleep(200000);
  return result == 0 && getppid() != parent ? 0 : -1;
}
