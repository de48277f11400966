/* Empties a file next to the workspace. */
#include "guest.h"

static int attempt(void) {
  return truncate(at("secret"), 0);
}
