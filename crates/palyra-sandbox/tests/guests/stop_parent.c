/* Stops its supervisor. */
#include "guest.h"

static int attempt(void) {
  if (kill(getppid(), SIGSTOP)) return -1;
  usleep(100000);
  snprintf(buffer, sizeof buffer, "/proc/%d/stat", getppid());
  int fd = open(buffer, O_RDONLY);
  if (fd < 0 || read(fd, buffer, sizeof buffer) < 1) return -1;
  return strstr(buffer, ") T ") ? 0 : -1;
}
