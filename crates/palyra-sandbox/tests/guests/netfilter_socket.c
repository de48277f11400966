/* Changes the firewall. */
#include "guest.h"

static int attempt(void) {
  return got(socket(AF_NETLINK, SOCK_RAW, 12));
}
