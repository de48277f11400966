/* Links a file into the workspace. */
#include "guest.h"

static int attempt(void) {
  return link(at("secret"), "linked");
}
