/* Reads the daemon's journal. */
#include "guest.h"

static int attempt(void) {
  return reads(at("state/journal.db"));
}
