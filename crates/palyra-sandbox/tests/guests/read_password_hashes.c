/* Reads the host's password hashes. */
#include "guest.h"

static int attempt(void) {
  return reads("/etc/shadow");
}
