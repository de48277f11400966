/* Connects to a host on the internet. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in to = inet("192.0.2.1", 443);
  return connects(socket(AF_INET, SOCK_STREAM, 0), &to, sizeof to);
}
