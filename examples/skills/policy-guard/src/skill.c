// Looks at a tool call before it is made. The payload of `run:before_tool` names the tool and its arguments; the words are looked for in all of it, as it
// is written in JSON.
#include <string.h>

#include "palyra.h"

static const char *const fallback = "rm -rf,DROP TABLE";

// The first of the forbidden words that stands in the text, or NULL.
static const char *forbidden_word(const char *words, const char *text) {
  while (*words) {
    size_t length = strcspn(words, ",");
    palyra_buffer word = {0};
    palyra_append_bytes(&word, words, length);
    if (length && strstr(text, palyra_buffer_text(&word))) return palyra_buffer_text(&word);
    words += length;
    if (*words == ',') words++;
  }
  return NULL;
}

static palyra_decision guard(const palyra_event *event) {
  if (strcmp(event->name, "run:before_tool") != 0) return (palyra_decision){.verdict = PALYRA_PROCEED, .reason = ""};

  const char *words = palyra_config("forbidden");
  const char *found = forbidden_word(words ? words : fallback, event->payload);
  if (found) {
    palyra_buffer reason = {0};
    palyra_append(&reason, "the arguments hold `");
    palyra_append(&reason, found);
    palyra_append(&reason, "`");
    return (palyra_decision){.verdict = PALYRA_BLOCK, .reason = palyra_buffer_text(&reason)};
  }
  const char *tool = palyra_json_string(event->payload, "tool");
  if (!tool) return (palyra_decision){.error = "the payload does not name a tool"};
  if (strstr(tool, "delete") || strstr(tool, "remove")) {
    return (palyra_decision){.verdict = PALYRA_REQUEST_APPROVAL, .reason = "this tool removes something"};
  }
  return (palyra_decision){.verdict = PALYRA_PROCEED, .reason = ""};
}

PALYRA_EXPORT_HOOK(guard)
