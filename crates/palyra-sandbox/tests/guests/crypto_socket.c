/* Uses the kernel's cryptography. */
#include "guest.h"

static int attempt(void) {
  return got(socket(AF_ALG, SOCK_SEQPACKET, 0));
}
