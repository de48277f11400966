/* Reads through a symbolic link. */
#include "guest.h"

static int attempt(void) {
  unlink("link");
  if (symlink(at("secret"), "link")) return -1;
  return reads("link");
}
