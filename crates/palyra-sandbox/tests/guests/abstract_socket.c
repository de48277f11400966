/* Connects to an abstract socket of the host. */
#include "guest.h"

static int attempt(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strcpy(to.sun_path + 1, abstract_name);
  return connects(socket(AF_UNIX, SOCK_STREAM, 0), &to, sizeof(sa_family_t) + 1 + strlen(abstract_name));
}
