// Growing texts and just enough JSON for a plugin's input and output. Written by `palyra skills build`; edits are lost.
//
// The host checked the input against the tool's schema, so it is JSON; what is not is still read without leaving the text.
#include "palyra.h"

#include <stdlib.h>
#include <string.h>

// Values nested deeper than this are not looked into.
#define DEPTH 64

void palyra_append_bytes(palyra_buffer *buffer, const char *bytes, size_t length) {
  if (buffer->length + length + 1 > buffer->capacity) {
    size_t capacity = (buffer->length + length + 1) * 2;
    char *data = realloc(buffer->data, capacity);
    if (!data) __builtin_trap();
    buffer->data = data;
    buffer->capacity = capacity;
  }
  if (length) memcpy(buffer->data + buffer->length, bytes, length);
  buffer->length += length;
  buffer->data[buffer->length] = 0;
}

void palyra_append(palyra_buffer *buffer, const char *text) { palyra_append_bytes(buffer, text, strlen(text)); }

const char *palyra_buffer_text(palyra_buffer *buffer) { return buffer->data ? buffer->data : ""; }

void palyra_append_number(palyra_buffer *buffer, long long number) {
  char digits[24];
  size_t place = sizeof(digits);
  unsigned long long rest = number < 0 ? 0ull - (unsigned long long)number : (unsigned long long)number;
  do {
    digits[--place] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (number < 0) digits[--place] = '-';
  palyra_append_bytes(buffer, digits + place, sizeof(digits) - place);
}

void palyra_append_json(palyra_buffer *buffer, const char *text) {
  static const char hex[] = "0123456789abcdef";
  palyra_append(buffer, "\"");
  for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
    if (*at == '"' || *at == '\\') {
      char escaped[2] = {'\\', (char)*at};
      palyra_append_bytes(buffer, escaped, 2);
    } else if (*at == '\n') {
      palyra_append(buffer, "\\n");
    } else if (*at < 0x20) {
      char escaped[6] = {'\\', 'u', '0', '0', hex[*at >> 4], hex[*at & 15]};
      palyra_append_bytes(buffer, escaped, 6);
    } else {
      palyra_append_bytes(buffer, (const char *)at, 1);
    }
  }
  palyra_append(buffer, "\"");
}

static const char *space(const char *at) {
  while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
  return at;
}

// After the closing quotation mark, or NULL.
static const char *skip_string(const char *at) {
  for (at++; *at && *at != '"'; at++) {
    if (*at == '\\' && !*++at) return NULL;
  }
  return *at ? at + 1 : NULL;
}

static const char *skip_value(const char *at, int depth) {
  at = space(at);
  if (*at == '"') return skip_string(at);
  if (*at == '{' || *at == '[') {
    char close = *at == '{' ? '}' : ']';
    if (depth >= DEPTH) return NULL;
    at = space(at + 1);
    while (*at && *at != close) {
      at = skip_value(at, depth + 1);
      if (!at) return NULL;
      at = space(at);
      if (*at == ':' || *at == ',') at = space(at + 1);
    }
    return *at ? at + 1 : NULL;
  }
  const char *start = at;
  while (*at && !strchr(",]}: \t\n\r", *at)) at++;
  return at == start ? NULL : at;
}

static void append_character(palyra_buffer *buffer, uint32_t character) {
  char bytes[4];
  size_t length;
  if (character < 0x80) {
    bytes[0] = (char)character;
    length = 1;
  } else if (character < 0x800) {
    bytes[0] = (char)(0xc0 | (character >> 6));
    bytes[1] = (char)(0x80 | (character & 0x3f));
    length = 2;
  } else if (character < 0x10000) {
    bytes[0] = (char)(0xe0 | (character >> 12));
    bytes[1] = (char)(0x80 | ((character >> 6) & 0x3f));
    bytes[2] = (char)(0x80 | (character & 0x3f));
    length = 3;
  } else {
    bytes[0] = (char)(0xf0 | (character >> 18));
    bytes[1] = (char)(0x80 | ((character >> 12) & 0x3f));
    bytes[2] = (char)(0x80 | ((character >> 6) & 0x3f));
    bytes[3] = (char)(0x80 | (character & 0x3f));
    length = 4;
  }
  palyra_append_bytes(buffer, bytes, length);
}

// Four hexadecimal digits, or -1.
static int32_t four_digits(const char *at) {
  int32_t number = 0;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    number = number * 16 + digit;
  }
  return number;
}

const char *palyra_json_text(const char *value) {
  if (!value || *(value = space(value)) != '"' || !skip_string(value)) return NULL;
  palyra_buffer text = {0};
  palyra_append_bytes(&text, "", 0);
  for (const char *at = value + 1; *at != '"'; at++) {
    if (*at != '\\') {
      palyra_append_bytes(&text, at, 1);
      continue;
    }
    at++;
    const char *plain = strchr("\"\\/b\bf\fn\nr\rt\t", *at);
    if (*at == '"' || *at == '\\' || *at == '/') {
      palyra_append_bytes(&text, at, 1);
    } else if (*at == 'u') {
      int32_t unit = four_digits(at + 1);
      if (unit < 0) return NULL;
      at += 4;
      if (unit >= 0xd800 && unit < 0xdc00 && at[1] == '\\' && at[2] == 'u') {
        int32_t low = four_digits(at + 3);
        if (low >= 0xdc00 && low < 0xe000) {
          at += 6;
          unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        }
      }
      // Half of a pair, and the zero that would end the text, become the replacement character.
      append_character(&text, unit == 0 || (unit >= 0xd800 && unit < 0xe000) ? 0xfffd : (uint32_t)unit);
    } else if (plain) {
      palyra_append_bytes(&text, plain + 1, 1);
    } else {
      return NULL;
    }
  }
  return palyra_buffer_text(&text);
}

const char *palyra_json_member(const char *object, const char *key) {
  if (!object || *(object = space(object)) != '{') return NULL;
  const char *at = space(object + 1);
  while (*at == '"') {
    const char *name = palyra_json_text(at);
    at = skip_string(at);
    if (!name || !at || *(at = space(at)) != ':') return NULL;
    at = space(at + 1);
    if (strcmp(name, key) == 0) return at;
    at = skip_value(at, 0);
    if (!at || *(at = space(at)) != ',') return NULL;
    at = space(at + 1);
  }
  return NULL;
}

const char *palyra_json_element(const char *array, size_t index) {
  if (!array || *(array = space(array)) != '[') return NULL;
  const char *at = space(array + 1);
  if (*at == ']') return NULL;
  while (index--) {
    at = skip_value(at, 0);
    if (!at || *(at = space(at)) != ',') return NULL;
    at = space(at + 1);
  }
  return at;
}

const char *palyra_json_string(const char *object, const char *key) { return palyra_json_text(palyra_json_member(object, key)); }

long long palyra_json_integer(const char *object, const char *key, long long otherwise) {
  const char *value = palyra_json_member(object, key);
  if (!value || !(*value == '-' || (*value >= '0' && *value <= '9'))) return otherwise;
  char *end;
  long long number = strtoll(value, &end, 10);
  return *end && strchr(".eE", *end) ? otherwise : number;
}
