/* Connects with a protocol that is almost TCP. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in to = inet("127.0.0.1", port);
  return connects(socket(AF_INET, SOCK_STREAM, 262), &to, sizeof to);
}
