//! The OpenAI-compatible interface in the description: addresses, what requests may say, what answers look like, and errors in OpenAI's shape.
//!
//! Its documents are OpenAI's, not ours, so there are no wire types to take them from; what is written here is held against the running daemon by its tests.

use serde_json::{Map, Value, json};

use super::Paths;

/// Where errors of this interface are described.
const REFUSAL: &str = "#/components/responses/OpenAiRefusal";

/// Every status that a request of this interface can be refused with.
const REFUSALS: &[u16] = &[400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 500, 501, 502, 503];

/// Adds the addresses.
pub(super) fn add(all: &mut Paths) {
    all.add(
        "/v1/models",
        ("get", operation("openai.models.list", "Lists the models.", &[], None, &json_answer(&list(&model())))),
    );
    let name = parameter("model", &json!({"type": "string", "minLength": 1}));
    all.add(
        "/v1/models/{model}",
        ("get", operation("openai.models.get", "One model.", &[name], None, &json_answer(&model()))),
    );
    let chat = operation(
        "openai.chat.completions",
        "A chat. It becomes a run; with `stream` the answer comes in chunks.",
        &[idempotency_key()],
        Some(chat_request()),
        &either_answer(&completion()),
    );
    all.add("/v1/chat/completions", ("post", chat));
    let create = operation(
        "openai.responses.create",
        "A response. It becomes a run; with `stream` the answer comes in events.",
        &[idempotency_key()],
        Some(response_request()),
        &either_answer(&response()),
    );
    all.add("/v1/responses", ("post", create));
    let id =
        parameter("response_id", &json!({"type": "string", "pattern": "^resp_[0-9A-HJKMNP-TV-Z]{26}_[0-9]{1,19}$"}));
    let stream = json!({"name": "stream", "in": "query", "schema": {"type": "boolean"}});
    let get = operation(
        "openai.responses.get",
        "An earlier response; with `stream` it is streamed from its beginning.",
        &[id, stream],
        None,
        &either_answer(&response()),
    );
    all.add("/v1/responses/{response_id}", ("get", get));
    let embeddings = operation(
        "openai.embeddings",
        "Embeddings from the configured server; 501 if there is none.",
        &[],
        Some(json!({
            "type": "object",
            "required": ["model", "input"],
            "properties": {
                "model": {"type": "string"},
                "input": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                "encoding_format": {"enum": ["float", "base64"]},
                "dimensions": {"type": "integer", "minimum": 1},
                "user": {"type": "string"},
            },
        })),
        &json_answer(
            &json!({"type": "object", "required": ["object", "data"], "properties": {"object": {"const": "list"}, "data": {"type": "array"}}}),
        ),
    );
    all.add("/v1/embeddings", ("post", embeddings));
}

/// What every refusal of this interface looks like.
pub(super) fn refusal() -> Value {
    let schema = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"enum": ["authentication_error", "permission_error", "rate_limit_error", "server_error", "invalid_request_error"]},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string", "description": "One of Palyra's codes."},
            },
        }},
    });
    json!({"description": "Why the request failed, in OpenAI's format.", "content": {"application/json": {"schema": schema}}})
}

fn operation(id: &str, summary: &str, parameters: &[Value], body: Option<Value>, success: &Value) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), success.clone());
    for status in REFUSALS {
        responses.insert(status.to_string(), json!({"$ref": REFUSAL}));
    }
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "tags": ["openai"],
        "parameters": parameters,
        "responses": responses,
        "x-palyra-scope": "models:use",
    });
    if let (Some(schema), Value::Object(fields)) = (body, &mut operation) {
        let body = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        fields.insert("requestBody".to_owned(), body);
    }
    operation
}

fn parameter(name: &str, schema: &Value) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same request with the same key returns the same run.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9._:-]+$"},
    })
}

fn json_answer(schema: &Value) -> Value {
    json!({"description": "Done.", "content": {"application/json": {"schema": schema}}})
}

/// At once or in parts.
fn either_answer(schema: &Value) -> Value {
    let events = json!({"type": "object", "required": ["data"], "properties": {"data": {"type": "string"}}});
    json!({"description": "The answer, or with `stream` its events.", "content": {
        "application/json": {"schema": schema},
        "text/event-stream": {"schema": events},
    }})
}

fn list(item: &Value) -> Value {
    json!({"type": "object", "required": ["object", "data"], "properties": {"object": {"const": "list"}, "data": {"type": "array", "items": item}}})
}

fn model() -> Value {
    json!({
        "type": "object",
        "required": ["id", "object", "created", "owned_by"],
        "properties": {"id": {"type": "string"}, "object": {"const": "model"}, "created": {"type": "integer"}, "owned_by": {"type": "string"}},
    })
}

fn chat_request() -> Value {
    let message = json!({
        "type": "object",
        "required": ["role"],
        "properties": {
            "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
            "content": {"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "null"}]},
            "name": {"type": "string"},
            "tool_calls": {"type": "array"},
            "tool_call_id": {"type": "string"},
        },
    });
    json!({
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": {"type": "string", "description": "`palyra` is the configured model."},
            "messages": {"type": "array", "minItems": 1, "items": message},
            "stream": {"type": "boolean"},
            "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
            "tools": {"type": "array", "items": {"type": "object"}},
            "tool_choice": {"enum": ["auto", "none"]},
            "metadata": metadata(),
        },
    })
}

fn response_request() -> Value {
    json!({
        "type": "object",
        "required": ["model", "input"],
        "properties": {
            "model": {"type": "string", "description": "`palyra` is the configured model."},
            "input": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
            "instructions": {"type": ["string", "null"]},
            "previous_response_id": {"type": ["string", "null"]},
            "stream": {"type": "boolean"},
            "tools": {"type": "array", "items": {"type": "object"}},
            "tool_choice": {"enum": ["auto", "none"]},
            "max_tool_calls": {"type": ["integer", "null"], "minimum": 1},
            "metadata": metadata(),
        },
    })
}

fn metadata() -> Value {
    json!({"type": ["object", "null"], "properties": {"workspace": {"type": "string", "description": "Absolute path of the directory to work in."}}})
}

fn completion() -> Value {
    json!({
        "type": "object",
        "required": ["id", "object", "created", "model", "choices", "usage"],
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "chat.completion"},
            "created": {"type": "integer"},
            "model": {"type": "string"},
            "choices": {"type": "array", "items": {
                "type": "object",
                "required": ["index", "message", "finish_reason"],
                "properties": {
                    "index": {"type": "integer"},
                    "message": {"type": "object"},
                    "finish_reason": {"enum": ["stop", "length", "content_filter", "tool_calls"]},
                },
            }},
            "usage": {"type": "object"},
        },
    })
}

fn response() -> Value {
    json!({
        "type": "object",
        "required": ["id", "object", "created_at", "status", "model", "output"],
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "response"},
            "created_at": {"type": "integer"},
            "status": {"enum": ["in_progress", "completed", "incomplete", "failed"]},
            "model": {"type": "string"},
            "output": {"type": "array", "items": {"type": "object"}},
            "error": {"type": ["object", "null"]},
            "usage": {"type": ["object", "null"]},
        },
    })
}
