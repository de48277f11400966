// Sends a text through the one grant for requests that the manifest asks for.
#include <string.h>

#include "palyra.h"
#include "tools.h"

static palyra_answer echo(const char *input) {
  const char *text = palyra_json_string(input, "text");
  if (!text) return palyra_invalid_input("the text is missing");

  uint64_t grant;
  if (!palyra_http_grant(0, &grant)) return palyra_failed("no request is granted");

  palyra_header headers[] = {{"content-type", "text/plain; charset=utf-8"}};
  palyra_request request = {
      .method = "POST",
      .url = "https://echo.example.com/echo",
      .headers = headers,
      .header_count = 1,
      .body = {text, strlen(text)},
  };
  palyra_response response;
  palyra_failure why;
  if (!palyra_http_send(grant, &request, &response, &why)) return palyra_failed(why.text);

  palyra_buffer output = {0};
  palyra_append(&output, "{\"status\":");
  palyra_append_number(&output, response.status);
  palyra_append(&output, ",\"body\":");
  palyra_append_json(&output, response.body.data);
  palyra_append(&output, "}");
  return palyra_ok(palyra_buffer_text(&output));
}

static palyra_answer call(const char *tool, const char *input) {
  if (strcmp(tool, "echo") == 0) return echo(input);
  return palyra_invalid_input("there is no such tool");
}

PALYRA_EXPORT_TOOLS(tools, call)
