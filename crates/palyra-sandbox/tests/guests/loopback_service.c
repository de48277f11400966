/* Connects to a service on the host's loopback. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in to = inet("127.0.0.1", port);
  return connects(socket(AF_INET, SOCK_STREAM, 0), &to, sizeof to);
}
