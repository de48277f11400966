/* Moves a file into the workspace. */
#include "guest.h"

static int attempt(void) {
  return rename(at("secret"), "stolen");
}
