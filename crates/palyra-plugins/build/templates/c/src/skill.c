// The tools of this skill. vendor/palyra/palyra.h declares the host interfaces; those in use must be listed in wit/world.wit too.
#include <string.h>

#include "palyra.h"
#include "tools.h"

static palyra_answer greet(const char *input) {
  const char *name = palyra_json_string(input, "name");
  if (!name || !*name) return palyra_invalid_input("the name is empty");
  palyra_buffer greeting = {0};
  palyra_append(&greeting, "Hello, ");
  palyra_append(&greeting, name);
  palyra_append(&greeting, "!");
  palyra_buffer output = {0};
  palyra_append(&output, "{\"greeting\":");
  palyra_append_json(&output, palyra_buffer_text(&greeting));
  palyra_append(&output, "}");
  return palyra_ok(palyra_buffer_text(&output));
}

static palyra_answer call(const char *tool, const char *input) {
  if (strcmp(tool, "greet") == 0) return greet(input);
  return palyra_invalid_input("there is no such tool");
}

PALYRA_EXPORT_TOOLS(tools, call)
