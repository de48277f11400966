/* Makes a directory next to the workspace. */
#include "guest.h"

static int attempt(void) {
  return mkdir(at("newdir"), 0700);
}
