// Plugins of Palyra in C. Written by `palyra skills build`; edits are lost.
//
// A plugin runs once per call, in a memory of its own that is thrown away afterwards: nothing needs to be freed.
// Texts that this kit hands out end with a zero byte. Only what a plugin calls becomes an import of its component.
#ifndef PALYRA_H
#define PALYRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- Tools -------------------------------------------------------------------------------------------------------------------------------------

// One tool as the model sees it; `src/tools.h` lists them, written from skill.toml.
typedef struct {
  const char *id;
  const char *name;
  const char *description;
  const char *input_schema;
  const char *output_schema;
} palyra_tool;

typedef enum { PALYRA_OK, PALYRA_INVALID_INPUT, PALYRA_FAILED } palyra_answer_kind;

// What a call gives: the output as a JSON text, or why there is none.
typedef struct {
  palyra_answer_kind kind;
  const char *text;
} palyra_answer;

static inline palyra_answer palyra_ok(const char *json) { return (palyra_answer){PALYRA_OK, json}; }
static inline palyra_answer palyra_invalid_input(const char *why) { return (palyra_answer){PALYRA_INVALID_INPUT, why}; }
static inline palyra_answer palyra_failed(const char *why) { return (palyra_answer){PALYRA_FAILED, why}; }

typedef palyra_answer (*palyra_call)(const char *tool, const char *input);

void *palyra_export_describe(const palyra_tool *tools, size_t count);
void *palyra_export_call(palyra_call function, char *tool, size_t tool_length, char *input, size_t input_length);

// Makes `tools` and the function that carries them out what the component exports.
#define PALYRA_EXPORT_TOOLS(tools, function)                                                                              \
  __attribute__((export_name("palyra:plugin/tool@1.0.0#describe"))) void *palyra_exported_describe(void) {                \
    return palyra_export_describe(tools, sizeof(tools) / sizeof((tools)[0]));                                             \
  }                                                                                                                       \
  __attribute__((export_name("palyra:plugin/tool@1.0.0#call"))) void *palyra_exported_call(char *tool, size_t tool_length, \
                                                                                           char *input, size_t length) {  \
    return palyra_export_call(function, tool, tool_length, input, length);                                                \
  }

// ---- Hooks -------------------------------------------------------------------------------------------------------------------------------------

// Something that happens or is about to. `run_id` is NULL when it belongs to no run; `payload` is a JSON text.
typedef struct {
  const char *name;
  uint64_t at;
  const char *run_id;
  const char *payload;
} palyra_event;

// From weakest to strongest.
typedef enum {
  PALYRA_PROCEED,
  PALYRA_ANNOTATE,
  PALYRA_TRANSFORM_PREVIEW,
  PALYRA_REQUEST_APPROVAL,
  PALYRA_BLOCK,
  PALYRA_FAIL_RUN
} palyra_verdict;

// The answer to an event. `text` is the proposal of PALYRA_TRANSFORM_PREVIEW, else NULL. An `error` that is not NULL counts as a failing hook.
typedef struct {
  palyra_verdict verdict;
  const char *reason;
  const char *text;
  const char *error;
} palyra_decision;

typedef palyra_decision (*palyra_handle_event)(const palyra_event *event);

void *palyra_export_handle(palyra_handle_event function, char *name, size_t name_length, uint64_t at, int32_t has_run, char *run, size_t run_length,
                           char *payload, size_t payload_length);

// Makes a function that answers events what the component exports.
#define PALYRA_EXPORT_HOOK(function)                                                                                                     \
  __attribute__((export_name("palyra:plugin/hook@1.0.0#handle"))) void *palyra_exported_handle(                                          \
      char *name, size_t name_length, uint64_t at, int32_t has_run, char *run, size_t run_length, char *payload, size_t payload_length) { \
    return palyra_export_handle(function, name, name_length, at, has_run, run, run_length, payload, payload_length);                     \
  }

// ---- The host ----------------------------------------------------------------------------------------------------------------------------------

typedef enum {
  PALYRA_NO_GRANT,
  PALYRA_DENIED,
  PALYRA_INVALID,
  PALYRA_EXHAUSTED,
  PALYRA_UNREACHABLE,
  PALYRA_TIMED_OUT
} palyra_failure_kind;

// Why the host did not do what was asked; `text` is in words and never NULL.
typedef struct {
  palyra_failure_kind kind;
  const char *text;
} palyra_failure;

// Bytes that need not be text; a zero byte follows them all the same.
typedef struct {
  const char *data;
  size_t length;
} palyra_bytes;

// A grant by its name in the manifest. False when there is none.
bool palyra_secret(const char *name, uint64_t *handle);
bool palyra_storage(const char *name, uint64_t *handle);
bool palyra_channel(const char *name, uint64_t *handle);
// The grant for requests at this place, counted from 0, and its rule.
bool palyra_http_grant(uint32_t index, uint64_t *handle);
const char *palyra_http_rule(uint64_t handle);

typedef struct {
  const char *name;
  const char *value;
} palyra_header;

typedef enum { PALYRA_BEARER, PALYRA_BASIC, PALYRA_HEADER } palyra_placement;

// A secret for one request, which the host puts in. `name` is the user of PALYRA_BASIC or the header of PALYRA_HEADER.
typedef struct {
  uint64_t secret;
  palyra_placement placement;
  const char *name;
} palyra_credential;

typedef struct {
  const char *method;
  const char *url;
  const palyra_header *headers;
  size_t header_count;
  palyra_bytes body;
  const palyra_credential *credentials;
  size_t credential_count;
} palyra_request;

typedef struct {
  uint16_t status;
  palyra_header *headers;
  size_t header_count;
  palyra_bytes body;
} palyra_response;

// Each of these says whether it was done; if not, `why` is set.
bool palyra_http_send(uint64_t grant, const palyra_request *request, palyra_response *response, palyra_failure *why);
bool palyra_secret_reveal(uint64_t secret, palyra_bytes *value, palyra_failure *why);
bool palyra_channel_send(uint64_t channel, const char *text, const char **message_id, palyra_failure *why);
// `found` says whether there is such a key.
bool palyra_storage_get(uint64_t space, const char *key, bool *found, palyra_bytes *value, uint64_t *version, palyra_failure *why);
bool palyra_storage_set(uint64_t space, const char *key, palyra_bytes value, palyra_failure *why);
bool palyra_storage_delete(uint64_t space, const char *key, palyra_failure *why);
// At most `limit` keys that begin with `prefix` and come after `after` (or NULL), in order.
bool palyra_storage_keys(uint64_t space, const char *prefix, const char *after, uint32_t limit, const char ***keys, size_t *count, palyra_failure *why);

typedef enum { PALYRA_DEBUG, PALYRA_INFO, PALYRA_WARN, PALYRA_ERROR } palyra_level;
void palyra_log(palyra_level level, const char *message);
// `percent` is from 0 to 100, or negative when it is not known.
void palyra_progress(int percent, const char *message);
// Milliseconds since 1970.
uint64_t palyra_now(void);
palyra_bytes palyra_random(uint32_t length);
// What the operator set for a key, or NULL.
const char *palyra_config(const char *key);

// ---- Texts and JSON ----------------------------------------------------------------------------------------------------------------------------

// A text that grows. Start with `palyra_buffer text = {0};`.
typedef struct {
  char *data;
  size_t length;
  size_t capacity;
} palyra_buffer;

void palyra_append(palyra_buffer *buffer, const char *text);
void palyra_append_bytes(palyra_buffer *buffer, const char *bytes, size_t length);
// Appends a text as a JSON string, in quotation marks.
void palyra_append_json(palyra_buffer *buffer, const char *text);
void palyra_append_number(palyra_buffer *buffer, long long number);
// The text so far, never NULL.
const char *palyra_buffer_text(palyra_buffer *buffer);

// Where the value of a member begins in an object, or NULL.
const char *palyra_json_member(const char *object, const char *key);
// Where the element at a place begins in an array, or NULL.
const char *palyra_json_element(const char *array, size_t index);
// The text of a JSON string, or NULL when the value is none.
const char *palyra_json_text(const char *value);
// The text of a member that is a string, or NULL.
const char *palyra_json_string(const char *object, const char *key);
// A member that is a whole number, or `otherwise`.
long long palyra_json_integer(const char *object, const char *key, long long otherwise);

#endif
