// The hook of this skill: a function that receives an event and returns a decision.
// vendor/palyra/palyra.h declares the host interfaces; those in use must be listed in wit/world.wit too.
#include <string.h>

#include "palyra.h"

// An `error` means that the hook failed; before an effect, a failing hook refuses.
static palyra_decision guard(const palyra_event *event) {
  if (!palyra_json_string(event->payload, "tool")) return (palyra_decision){.error = "the payload names no tool"};
  if (strstr(event->payload, ".env")) {
    return (palyra_decision){.verdict = PALYRA_BLOCK, .reason = "the call is about a `.env` file"};
  }
  return (palyra_decision){.verdict = PALYRA_PROCEED, .reason = ""};
}

PALYRA_EXPORT_HOOK(guard)
