/* Sends data while connecting. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in to = inet("127.0.0.1", port);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  return got(sendto(fd, "x", 1, MSG_FASTOPEN, (void *)&to, sizeof to));
}
