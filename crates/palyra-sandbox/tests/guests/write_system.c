/* Puts a program into /usr/bin. */
#include "guest.h"

static int attempt(void) {
  return opens("/usr/bin/evil", O_WRONLY | O_CREAT);
}
