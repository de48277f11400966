/* Makes a file next to the workspace. */
#include "guest.h"

static int attempt(void) {
  return opens(at("new"), O_WRONLY | O_CREAT);
}
