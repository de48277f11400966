/* Changes the mode of a file next to the workspace. */
#include "guest.h"

static int attempt(void) {
  return chmod(at("secret"), 0666);
}
