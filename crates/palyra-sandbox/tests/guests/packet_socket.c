/* Listens to the wire. */
#include "guest.h"

static int attempt(void) {
  return got(socket(AF_PACKET, SOCK_RAW, 0));
}
