/* Makes a control group of its own. */
#include "guest.h"

static int attempt(void) {
  return mkdir("/sys/fs/cgroup/evil", 0700) && mkdir("/sys/fs/cgroup/memory/evil", 0700) && mkdir("/sys/fs/cgroup/unified/evil", 0700) ? -1 : 0;
}
