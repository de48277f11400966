/* Lists a directory through a symbolic link. */
#include "guest.h"

static int attempt(void) {
  unlink("dirlink");
  if (symlink(at("state"), "dirlink")) return -1;
  return reads("dirlink/journal.db");
}
