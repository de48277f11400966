/* Sends a question to a name server of its own. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_in to = inet("192.0.2.53", 53);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return -1;
  return got(sendto(fd, "secret.example", 14, 0, (void *)&to, sizeof to));
}
