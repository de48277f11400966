/* Deletes a file next to the workspace. */
#include "guest.h"

static int attempt(void) {
  return unlink(at("secret"));
}
