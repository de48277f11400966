/* Loads a library into every program. */
#include "guest.h"

static int attempt(void) {
  return opens("/etc/ld.so.preload", O_WRONLY | O_CREAT);
}
