// The canonical ABI between a plugin in C and its host. Written by `palyra skills build`; edits are lost.
//
// The structures below lie in memory as the ABI wants them: on wasm32, C aligns these types in the same way.
#include "palyra.h"

#include <stdlib.h>
#include <string.h>

#define IMPORT(interface, function) __attribute__((import_module("palyra:host/" interface "@1.0.0"), import_name(function)))

typedef struct {
  char *data;
  size_t length;
} abi_list;

typedef struct {
  uint8_t present;
  uint64_t value;
} abi_option_u64;

typedef struct {
  uint8_t present;
  abi_list value;
} abi_option_list;

typedef struct {
  uint8_t kind;
  abi_list text;
} abi_failure;

typedef struct {
  uint8_t failed;
  union {
    abi_list ok;
    abi_failure failure;
  };
} abi_result_list;

// ---- Memory and texts --------------------------------------------------------------------------------------------------------------------------

static void *allocate(size_t size) {
  void *memory = malloc(size ? size : 1);
  if (!memory) __builtin_trap();
  return memory;
}

__attribute__((export_name("cabi_realloc"))) void *palyra_exported_realloc(void *old, size_t old_size, size_t align, size_t size) {
  (void)old_size;
  if (size == 0) return (void *)align;
  void *memory = realloc(old_size ? old : NULL, size);
  if (!memory) __builtin_trap();
  return memory;
}

static const char *text_of(const char *data, size_t length) {
  char *text = allocate(length + 1);
  if (length) memcpy(text, data, length);
  text[length] = 0;
  return text;
}

static palyra_bytes bytes_of(abi_list list) { return (palyra_bytes){text_of(list.data, list.length), list.length}; }

static abi_list list_of(const char *text) {
  if (!text) return (abi_list){NULL, 0};
  return (abi_list){(char *)text, strlen(text)};
}

static bool fail(palyra_failure *why, const abi_failure *failure) {
  static const char *const words[] = {"not granted", "the grant does not cover this", "the request makes no sense",
                                      "a limit is used up",   "unreachable",                   "timed out"};
  why->kind = (palyra_failure_kind)failure->kind;
  bool in_words = failure->kind >= PALYRA_DENIED && failure->kind <= PALYRA_UNREACHABLE;
  why->text = in_words ? text_of(failure->text.data, failure->text.length) : words[failure->kind];
  return false;
}

// ---- Exports -----------------------------------------------------------------------------------------------------------------------------------

typedef struct {
  abi_list fields[5];
} abi_description;

void *palyra_export_describe(const palyra_tool *tools, size_t count) {
  abi_description *described = allocate(count * sizeof(abi_description));
  for (size_t i = 0; i < count; i++) {
    described[i].fields[0] = list_of(tools[i].id);
    described[i].fields[1] = list_of(tools[i].name);
    described[i].fields[2] = list_of(tools[i].description);
    described[i].fields[3] = list_of(tools[i].input_schema);
    described[i].fields[4] = list_of(tools[i].output_schema);
  }
  abi_list *list = allocate(sizeof(abi_list));
  list->data = (char *)described;
  list->length = count;
  return list;
}

void *palyra_export_call(palyra_call function, char *tool, size_t tool_length, char *input, size_t input_length) {
  palyra_answer answer = function(text_of(tool, tool_length), text_of(input, input_length));
  abi_result_list *result = allocate(sizeof(abi_result_list));
  result->failed = answer.kind != PALYRA_OK;
  if (result->failed) {
    result->failure.kind = answer.kind == PALYRA_FAILED;
    result->failure.text = list_of(answer.text);
  } else {
    result->ok = list_of(answer.text);
  }
  return result;
}

typedef struct {
  uint8_t failed;
  union {
    struct {
      uint8_t verdict;
      abi_list reason;
      abi_option_list text;
    } ok;
    abi_list error;
  };
} abi_result_decision;

void *palyra_export_handle(palyra_handle_event function, char *name, size_t name_length, uint64_t at, int32_t has_run, char *run, size_t run_length,
                           char *payload, size_t payload_length) {
  palyra_event event = {text_of(name, name_length), at, has_run ? text_of(run, run_length) : NULL, text_of(payload, payload_length)};
  palyra_decision decision = function(&event);
  abi_result_decision *result = allocate(sizeof(abi_result_decision));
  result->failed = decision.error != NULL;
  if (result->failed) {
    result->error = list_of(decision.error);
  } else {
    result->ok.verdict = (uint8_t)decision.verdict;
    result->ok.reason = list_of(decision.reason);
    result->ok.text.present = decision.text != NULL;
    result->ok.text.value = list_of(decision.text);
  }
  return result;
}

// ---- Grants ------------------------------------------------------------------------------------------------------------------------------------

IMPORT("capabilities", "http-count") uint32_t host_http_count(void);
IMPORT("capabilities", "http-handle") void host_http_handle(uint32_t index, abi_option_u64 *result);
IMPORT("capabilities", "http-rule") void host_http_rule(uint64_t handle, abi_option_list *result);
IMPORT("capabilities", "secret-count") uint32_t host_secret_count(void);
IMPORT("capabilities", "secret-handle") void host_secret_handle(uint32_t index, abi_option_u64 *result);
IMPORT("capabilities", "secret-name") void host_secret_name(uint64_t handle, abi_option_list *result);
IMPORT("capabilities", "storage-count") uint32_t host_storage_count(void);
IMPORT("capabilities", "storage-handle") void host_storage_handle(uint32_t index, abi_option_u64 *result);
IMPORT("capabilities", "storage-name") void host_storage_name(uint64_t handle, abi_option_list *result);
IMPORT("capabilities", "channel-count") uint32_t host_channel_count(void);
IMPORT("capabilities", "channel-handle") void host_channel_handle(uint32_t index, abi_option_u64 *result);
IMPORT("capabilities", "channel-name") void host_channel_name(uint64_t handle, abi_option_list *result);

static bool find(uint32_t count, void (*at)(uint32_t, abi_option_u64 *), void (*name_of)(uint64_t, abi_option_list *), const char *name,
                 uint64_t *handle) {
  abi_list wanted = list_of(name);
  for (uint32_t i = 0; i < count; i++) {
    abi_option_u64 found;
    at(i, &found);
    if (!found.present) continue;
    abi_option_list given;
    name_of(found.value, &given);
    if (given.present && given.value.length == wanted.length && memcmp(given.value.data, wanted.data, wanted.length) == 0) {
      *handle = found.value;
      return true;
    }
  }
  return false;
}

bool palyra_secret(const char *name, uint64_t *handle) { return find(host_secret_count(), host_secret_handle, host_secret_name, name, handle); }

bool palyra_storage(const char *name, uint64_t *handle) { return find(host_storage_count(), host_storage_handle, host_storage_name, name, handle); }

bool palyra_channel(const char *name, uint64_t *handle) { return find(host_channel_count(), host_channel_handle, host_channel_name, name, handle); }

bool palyra_http_grant(uint32_t index, uint64_t *handle) {
  if (index >= host_http_count()) return false;
  abi_option_u64 found;
  host_http_handle(index, &found);
  *handle = found.value;
  return found.present;
}

const char *palyra_http_rule(uint64_t handle) {
  abi_option_list rule;
  host_http_rule(handle, &rule);
  return rule.present ? text_of(rule.value.data, rule.value.length) : NULL;
}

// ---- Requests, secrets, channels ---------------------------------------------------------------------------------------------------------------

typedef struct {
  abi_list name;
  abi_list value;
} abi_header;

typedef struct {
  uint64_t secret;
  uint8_t placement;
  abi_list name;
} abi_credential;

typedef struct {
  uint8_t failed;
  union {
    struct {
      uint16_t status;
      struct {
        abi_header *data;
        size_t length;
      } headers;
      abi_list body;
    } ok;
    abi_failure failure;
  };
} abi_result_response;

IMPORT("http", "send")
void host_http_send(uint64_t grant, const char *method, size_t method_length, const char *url, size_t url_length, const abi_header *headers,
                    size_t header_count, const char *body, size_t body_length, const abi_credential *credentials, size_t credential_count,
                    abi_result_response *result);
IMPORT("secret-reveal", "reveal") void host_secret_reveal(uint64_t secret, abi_result_list *result);
IMPORT("channel", "send") void host_channel_send(uint64_t channel, const char *text, size_t length, abi_result_list *result);

bool palyra_http_send(uint64_t grant, const palyra_request *request, palyra_response *response, palyra_failure *why) {
  abi_header *headers = allocate(request->header_count * sizeof(abi_header));
  for (size_t i = 0; i < request->header_count; i++) {
    headers[i].name = list_of(request->headers[i].name);
    headers[i].value = list_of(request->headers[i].value);
  }
  abi_credential *credentials = allocate(request->credential_count * sizeof(abi_credential));
  for (size_t i = 0; i < request->credential_count; i++) {
    credentials[i].secret = request->credentials[i].secret;
    credentials[i].placement = (uint8_t)request->credentials[i].placement;
    credentials[i].name = list_of(request->credentials[i].name);
  }
  abi_result_response result;
  host_http_send(grant, request->method, strlen(request->method), request->url, strlen(request->url), headers, request->header_count,
                 request->body.data, request->body.length, credentials, request->credential_count, &result);
  if (result.failed) return fail(why, &result.failure);
  response->status = result.ok.status;
  response->header_count = result.ok.headers.length;
  response->headers = allocate(response->header_count * sizeof(palyra_header));
  for (size_t i = 0; i < response->header_count; i++) {
    abi_header *header = &result.ok.headers.data[i];
    response->headers[i].name = text_of(header->name.data, header->name.length);
    response->headers[i].value = text_of(header->value.data, header->value.length);
  }
  response->body = bytes_of(result.ok.body);
  return true;
}

bool palyra_secret_reveal(uint64_t secret, palyra_bytes *value, palyra_failure *why) {
  abi_result_list result;
  host_secret_reveal(secret, &result);
  if (result.failed) return fail(why, &result.failure);
  *value = bytes_of(result.ok);
  return true;
}

bool palyra_channel_send(uint64_t channel, const char *text, const char **message_id, palyra_failure *why) {
  abi_result_list result;
  host_channel_send(channel, text, strlen(text), &result);
  if (result.failed) return fail(why, &result.failure);
  *message_id = text_of(result.ok.data, result.ok.length);
  return true;
}

// ---- Storage -----------------------------------------------------------------------------------------------------------------------------------

typedef struct {
  uint8_t failed;
  union {
    struct {
      uint8_t present;
      struct {
        abi_list value;
        uint64_t version;
      } entry;
    } ok;
    abi_failure failure;
  };
} abi_result_entry;

typedef struct {
  uint8_t failed;
  abi_failure failure;
} abi_result_nothing;

IMPORT("storage", "get") void host_storage_get(uint64_t space, const char *key, size_t length, abi_result_entry *result);
IMPORT("storage", "set")
void host_storage_set(uint64_t space, const char *key, size_t length, const char *value, size_t value_length, abi_result_nothing *result);
IMPORT("storage", "delete") void host_storage_delete(uint64_t space, const char *key, size_t length, abi_result_nothing *result);
IMPORT("storage", "keys")
void host_storage_keys(uint64_t space, const char *prefix, size_t length, int32_t has_after, const char *after, size_t after_length, uint32_t limit,
                       abi_result_list *result);

bool palyra_storage_get(uint64_t space, const char *key, bool *found, palyra_bytes *value, uint64_t *version, palyra_failure *why) {
  abi_result_entry result;
  host_storage_get(space, key, strlen(key), &result);
  if (result.failed) return fail(why, &result.failure);
  *found = result.ok.present;
  if (*found) {
    *value = bytes_of(result.ok.entry.value);
    *version = result.ok.entry.version;
  }
  return true;
}

bool palyra_storage_set(uint64_t space, const char *key, palyra_bytes value, palyra_failure *why) {
  abi_result_nothing result;
  host_storage_set(space, key, strlen(key), value.data, value.length, &result);
  return result.failed ? fail(why, &result.failure) : true;
}

bool palyra_storage_delete(uint64_t space, const char *key, palyra_failure *why) {
  abi_result_nothing result;
  host_storage_delete(space, key, strlen(key), &result);
  return result.failed ? fail(why, &result.failure) : true;
}

bool palyra_storage_keys(uint64_t space, const char *prefix, const char *after, uint32_t limit, const char ***keys, size_t *count,
                         palyra_failure *why) {
  abi_result_list result;
  abi_list from = list_of(after);
  host_storage_keys(space, prefix, strlen(prefix), after != NULL, from.data, from.length, limit, &result);
  if (result.failed) return fail(why, &result.failure);
  const abi_list *listed = (const abi_list *)result.ok.data;
  *count = result.ok.length;
  *keys = allocate(*count * sizeof(char *));
  for (size_t i = 0; i < *count; i++) (*keys)[i] = text_of(listed[i].data, listed[i].length);
  return true;
}

// ---- The small ones ----------------------------------------------------------------------------------------------------------------------------

typedef struct {
  uint64_t seconds;
  uint32_t nanoseconds;
} abi_instant;

IMPORT("log", "write") void host_log(int32_t level, const char *message, size_t length);
IMPORT("progress", "report") void host_progress(int32_t has_percent, int32_t percent, const char *message, size_t length);
IMPORT("clock", "now") void host_now(abi_instant *result);
IMPORT("random", "bytes") void host_random(uint32_t length, abi_list *result);
IMPORT("config", "get") void host_config(const char *key, size_t length, abi_option_list *result);

void palyra_log(palyra_level level, const char *message) { host_log((int32_t)level, message, strlen(message)); }

void palyra_progress(int percent, const char *message) {
  host_progress(percent >= 0, percent < 0 ? 0 : percent > 100 ? 100 : percent, message, strlen(message));
}

uint64_t palyra_now(void) {
  abi_instant instant;
  host_now(&instant);
  return instant.seconds * 1000 + instant.nanoseconds / 1000000;
}

palyra_bytes palyra_random(uint32_t length) {
  abi_list bytes;
  host_random(length, &bytes);
  return bytes_of(bytes);
}

const char *palyra_config(const char *key) {
  abi_option_list value;
  host_config(key, strlen(key), &value);
  return value.present ? text_of(value.value.data, value.value.length) : NULL;
}
