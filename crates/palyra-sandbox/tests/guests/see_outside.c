/* Asks for the size of a file next to the workspace. */
#include "guest.h"

static int attempt(void) {
  struct stat found;
  return stat(at("secret"), &found);
}
