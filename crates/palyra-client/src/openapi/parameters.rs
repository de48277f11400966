//! Parameters outside the body: of addresses, queries and headers.

use palyra_common::RunId;
use schemars::{JsonSchema as _, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// The id in an address.
pub(super) fn in_path(name: &'static str) -> Value {
    let schema = match name {
        "seq" => json!({"type": "integer", "minimum": 0}),
        "agent_id" | "hook_id" => json!({"type": "string", "pattern": "^[a-z0-9._-]{1,64}$"}),
        "skill_id" | "publisher" => json!({"type": "string", "pattern": "^[a-z][a-z0-9.-]{0,63}$"}),
        "token_id" => json!({"type": "string", "pattern": "^[A-Za-z0-9]{1,64}$"}),
        // Ids of all kinds have one form.
        _ => RunId::json_schema(&mut SchemaGenerator::default()).into(),
    };
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

/// The fields of a flat record as parameters of a query.
pub(super) fn in_query(record: &Schema) -> Vec<Value> {
    let fields = record.get("properties").and_then(Value::as_object);
    let required = record.get("required").and_then(Value::as_array);
    fields
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
            let mut schema = without_null(schema.clone());
            let description = schema.as_object_mut().and_then(|fields| fields.remove("description"));
            json!({
                "name": name,
                "in": "query",
                "required": is_required,
                "description": description.unwrap_or_default(),
                "schema": schema,
            })
        })
        .collect()
}

/// A query has no null: what is not given is left out.
fn without_null(mut schema: Value) -> Value {
    let Some(fields) = schema.as_object_mut() else { return schema };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(options)) = fields.get_mut("anyOf") {
        options.retain(|option| option.get("type").is_none_or(|name| name != "null"));
        if let [only] = options.as_slice() {
            let only = only.clone();
            fields.remove("anyOf");
            if let Value::Object(only) = only {
                fields.extend(only);
            }
        }
    }
    schema
}

/// What every change takes besides its own parameters.
pub(super) fn of_changes() -> [Value; 2] {
    [
        json!({
            "name": "Idempotency-Key",
            "in": "header",
            "description": "The same key with the same request gives the stored answer instead of a second effect.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9._:-]+$"},
        }),
        json!({
            "name": "If-Match",
            "in": "header",
            "description": "The request is refused if its target is no longer at this version.",
            "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
        }),
    ]
}
