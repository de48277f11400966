/* Changes the list of users. */
#include "guest.h"

static int attempt(void) {
  return opens("/etc/passwd", O_WRONLY);
}
