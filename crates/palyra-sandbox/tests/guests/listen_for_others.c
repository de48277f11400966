/* Waits for the host to connect. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in here = inet("127.0.0.1", 47811);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (void *)&here, sizeof here) || listen(fd, 1)) return -1;
  struct timeval soon = {0, 500000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
  return got(accept(fd, NULL, NULL));
}
