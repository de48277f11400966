/* Asks the cloud's metadata service. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in to = inet("169.254.169.254", 80);
  return connects(socket(AF_INET, SOCK_STREAM, 0), &to, sizeof to);
}
