//! One operation of the description: its parameters, its answers, its refusals.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::parameters;
use crate::api::NDJSON;
use crate::api::RunTapeParams;
use crate::command::{CommandSpec, HttpMethod};

/// Every status that a request can be refused with, and what it means.
pub const REFUSALS: &[(u16, &str)] = &[
    (400, "The request cannot be read."),
    (401, "The caller is not authenticated."),
    (403, "Policy does not permit it, or the request comes from another site."),
    (404, "Not found."),
    (405, "The address does not support this method."),
    (408, "The body did not arrive in time."),
    (409, "The request conflicts with the current state."),
    (413, "The body is too large."),
    (415, "The body's encoding is not supported."),
    (422, "A field is invalid; the error names it."),
    (429, "Too many requests; `Retry-After` says how long to wait."),
    (500, "An internal error of the daemon."),
    (501, "The protocol defines this command, but this daemon does not support it."),
    (502, "Something that the daemon depends on failed."),
    (503, "The daemon is not accepting work now."),
];

/// What a success looks like.
pub(super) enum Answer {
    /// One document.
    Json(Value),
    /// One document per line.
    Lines(Value),
}

/// An operation to be.
pub(super) struct Operation<'a> {
    spec: &'a CommandSpec,
    parameters: Vec<Value>,
    body: Option<Value>,
}

impl<'a> Operation<'a> {
    pub(super) fn of(spec: &'a CommandSpec, generator: &mut SchemaGenerator) -> Self {
        let mut parameters: Vec<Value> = spec.target.map(parameters::in_path).into_iter().collect();
        let rest = (spec.rest)(generator);
        let body = match spec.method {
            HttpMethod::Get => {
                parameters.extend(parameters::in_query(&rest));
                None
            }
            HttpMethod::Post => {
                parameters.extend(parameters::of_changes());
                Some(rest.into())
            }
        };
        Self { spec, parameters, body }
    }

    /// Its method and its description.
    pub(super) fn build(self, answer: Answer) -> (&'static str, Value) {
        let name = self.spec.name.as_str();
        let (media, schema) = match answer {
            Answer::Json(schema) => ("application/json", schema),
            Answer::Lines(schema) => (NDJSON, schema),
        };
        let mut operation = json!({
            "operationId": name,
            "summary": summary(self.spec),
            "tags": [name.split('.').next().unwrap_or(name)],
            "parameters": self.parameters,
            "responses": responses(&json!({"description": "Done.", "content": {media: {"schema": schema}}})),
            "x-palyra-scope": self.spec.scope.as_str(),
            "x-palyra-effect": self.spec.effect.as_str(),
        });
        if let (Some(schema), Value::Object(fields)) = (self.body, &mut operation) {
            let required = schema.get("required").and_then(Value::as_array).is_some_and(|fields| !fields.is_empty());
            let body = json!({"required": required, "content": {"application/json": {"schema": schema}}});
            fields.insert("requestBody".to_owned(), body);
        }
        let method = match self.spec.method {
            HttpMethod::Get => "get",
            HttpMethod::Post => "post",
        };
        (method, operation)
    }
}

fn summary(spec: &CommandSpec) -> String {
    format!("`{}`; needs the scope `{}`.", spec.name.as_str(), spec.scope.as_str())
}

/// The success and every refusal.
fn responses(success: &Value) -> Value {
    let mut all = Map::new();
    all.insert("200".to_owned(), success.clone());
    for (status, _) in REFUSALS {
        all.insert(status.to_string(), json!({"$ref": "#/components/responses/Refusal"}));
    }
    Value::Object(all)
}

/// An operation that answers strangers.
pub(super) fn open(id: &str, summary: &str, schema: &Value) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "security": [],
        "responses": responses(&json!({"description": "OK.", "content": {"application/json": {"schema": schema}}})),
    })
}

/// Whether work can begin: the same document either way.
pub(super) fn ready(schema: &Value) -> Value {
    let mut operation = open("ready", "Readiness: whether the daemon accepts work, and if not, why.", schema);
    if let Some(Value::Object(responses)) = operation.get_mut("responses") {
        let not = json!({"description": "Not ready.", "content": {"application/json": {"schema": schema}}});
        responses.insert("503".to_owned(), not);
    }
    operation
}

/// Numbers for programs that watch.
pub(super) fn metrics() -> Value {
    let text = json!({"schema": {"type": "string"}});
    let content = json!({"text/plain": text, "application/openmetrics-text": text});
    json!({
        "operationId": "metrics",
        "summary": "Metrics for Prometheus; needs the scope `metrics:read`.",
        "responses": responses(&json!({"description": "The metrics.", "content": content})),
        "x-palyra-scope": "metrics:read",
    })
}

/// Any command as an envelope.
pub(super) fn envelope(envelope: &Value, result: &Value) -> Value {
    let summary = "Any command as an envelope. A refused command is also answered with 200: check `ok`.";
    json!({
        "operationId": "acp.command",
        "summary": summary,
        "tags": ["acp"],
        "requestBody": {"required": true, "content": {"application/json": {"schema": envelope}}},
        "responses": responses(&json!({"description": "Answered.", "content": {"application/json": {"schema": result}}})),
    })
}

/// Files as a form.
pub(super) fn form(result: &Value) -> Value {
    let files = json!({"type": "array", "maxItems": 16, "items": {"type": "string", "format": "binary"}});
    let schema = json!({"type": "object", "required": ["file"], "properties": {"file": files}});
    json!({
        "operationId": "attachment.form",
        "summary": "`attachment.add` for files of up to 32 MiB; needs the scope `runs:write`.",
        "tags": ["attachment"],
        "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": schema}}},
        "responses": responses(&json!({"description": "Stored.", "content": {"application/json": {"schema": result}}})),
        "x-palyra-scope": "runs:write",
    })
}

/// A run's events for browsers.
pub(super) fn events(generator: &mut SchemaGenerator) -> Value {
    let mut parameters = vec![parameters::in_path("run_id")];
    parameters.extend(parameters::in_query(&generator.root_schema_for::<RunTapeParams>()));
    parameters.push(json!({
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The last position that was seen; the stream continues after it.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,19}$"},
    }));
    let success = json!({"description": "Events; the id of each is its position.", "content": {"text/event-stream": {"schema": {
        "type": "object",
        "description": "`data` is a `RunStreamEvent` as JSON.",
        "required": ["data"],
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
    }}}});
    json!({
        "operationId": "run.events",
        "summary": "A run's events as Server-Sent Events.",
        "tags": ["run"],
        "parameters": parameters,
        "responses": responses(&success),
    })
}
