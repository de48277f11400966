/* Looks for shared memory that others made. */
#include "guest.h"
#include <sys/shm.h>

static int attempt(void) {
  return let_in(shmctl(0, SHM_INFO, (void *)buffer)) == 0 && ((struct shm_info *)buffer)->used_ids > 0 ? 0 : -1;
}
