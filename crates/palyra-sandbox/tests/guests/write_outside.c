/* Changes a file next to the workspace. */
#include "guest.h"

static int attempt(void) {
  return opens(at("secret"), O_WRONLY);
}
