/* Takes a file of the system. */
#include "guest.h"

static int attempt(void) {
  return chown("/etc/passwd", getuid(), getgid());
}
