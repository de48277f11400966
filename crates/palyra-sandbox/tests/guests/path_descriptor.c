/* Opens a path without access and reads through it. */
#include "guest.h"

static int attempt(void) {
  int fd = open(at("secret"), O_PATH);
  if (fd < 0) return -1;
  snprintf(buffer, sizeof buffer, "/proc/self/fd/%d", fd);
  return reads(strdup(buffer));
}
