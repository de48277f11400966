/* Changes the time of a file next to the workspace. */
#include "guest.h"

static int attempt(void) {
  struct timeval old[2] = {{1, 0}, {1, 0}};
  return utimes(at("secret"), old);
}
