/* Opens a file by its number. */
#include "guest.h"

static int attempt(void) {
  struct { struct file_handle head; char rest[128]; } handle = {.head.handle_bytes = 128};
  int mount;
  if (name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount, 0)) return -1;
  return got(open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY));
}
