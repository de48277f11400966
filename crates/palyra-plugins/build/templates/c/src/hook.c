// The hook of this skill: a function that is told what is about to happen and says what is to become of it.
// vendor/palyra/palyra.h says what the host offers; what is used is named in wit/world.wit too.
#include <string.h>

#include "palyra.h"

// An `error` counts as a failing hook, and before an effect a failing hook refuses.
static palyra_decision guard(const palyra_event *event) {
  if (!palyra_json_string(event->payload, "tool")) return (palyra_decision){.error = "the payload names no tool"};
  if (strstr(event->payload, ".env")) {
    return (palyra_decision){.verdict = PALYRA_BLOCK, .reason = "the call is about a `.env` file"};
  }
  return (palyra_decision){.verdict = PALYRA_PROCEED, .reason = ""};
}

PALYRA_EXPORT_HOOK(guard)
