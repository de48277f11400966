/* Types a command into the terminal it was started from. */
#include "guest.h"

static int attempt(void) {
  return let_in(ioctl(0, TIOCSTI, "x"));
}
