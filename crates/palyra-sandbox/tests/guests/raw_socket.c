/* Makes packets by hand. */
#include "guest.h"

static int attempt(void) {
  return got(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}
