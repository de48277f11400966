/* Connects over the other protocol. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
  inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr);
  return connects(socket(AF_INET6, SOCK_STREAM, 0), &to, sizeof to);
}
