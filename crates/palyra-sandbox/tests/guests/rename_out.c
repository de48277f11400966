/* Moves a file out of the workspace. */
#include "guest.h"

static int attempt(void) {
  close(open("mine", O_WRONLY | O_CREAT, 0600));
  return rename("mine", at("moved"));
}
