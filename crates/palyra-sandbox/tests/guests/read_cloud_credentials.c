/* Reads a token from the usual place. */
#include "guest.h"

static int attempt(void) {
  return reads(at("home/.config/token"));
}
