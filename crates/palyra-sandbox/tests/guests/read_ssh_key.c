/* Reads a private key in the user's home. */
#include "guest.h"

static int attempt(void) {
  return reads(at("home/.ssh/id_ed25519"));
}
