//! Shapes of answers, as OpenAI's wires have them.
//!
//! A strict schema is enforced while the model writes, but only part of JSON Schema can be strict: an object, every object in it
//! closed, every property required, some keywords not at all. A schema that is not like that goes along as advice; whoever asked
//! checks the answer in either case.

use serde_json::{Map, Value, json};

/// Keywords that a strict schema may not have.
const FOREIGN: &[&str] = &[
    "allOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Longest name of a shape.
const MAX_NAME: usize = 64;

/// Name, schema and strictness, beside each other as the Responses API has them.
pub(crate) fn named(name: &str, schema: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), acceptable(name).into());
    fields.insert("schema".to_owned(), schema.clone());
    fields.insert("strict".to_owned(), can_be_strict(schema).into());
    fields
}

/// `response_format` of chat completions.
pub(super) fn response_format(name: &str, schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": named(name, schema) })
}

/// The name with what is not allowed replaced.
fn acceptable(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(MAX_NAME).map(keep).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

/// Whether the provider can hold the model to this schema.
fn can_be_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && is_strict(schema)
}

/// Whether a schema and all within it can be strict.
fn is_strict(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return true };
    let properties = fields.get("properties").and_then(Value::as_object);
    let is_object = fields.get("type").is_some_and(|kind| kind == "object") || properties.is_some();
    let closed = fields.get("additionalProperties") == Some(&Value::Bool(false));
    let required = fields.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let all_required =
        properties.is_none_or(|known| known.keys().all(|name| required.iter().any(|wanted| wanted == name)));
    let within = |name: &str| match fields.get(name) {
        Some(Value::Object(schemas)) if matches!(name, "properties" | "$defs" | "definitions") => {
            schemas.values().all(is_strict)
        }
        Some(Value::Array(schemas)) => schemas.iter().all(is_strict),
        Some(schema) => is_strict(schema),
        None => true,
    };
    FOREIGN.iter().all(|keyword| !fields.contains_key(*keyword))
        && (!is_object || (closed && all_required))
        && ["properties", "$defs", "definitions", "items", "prefixItems", "anyOf"].into_iter().all(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictness_is_asked_for_where_it_can_be_had() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false});
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let optional = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
        let around = |inner: Value| json!({"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": false});
        let table = [
            (closed.clone(), true),
            (open.clone(), false),
            (optional, false),
            (around(json!({"type": "array", "items": closed})), true),
            (around(json!({"type": "array", "items": open})), false),
            (around(json!({"anyOf": [{"type": "null"}, open]})), false),
            (around(json!({"oneOf": [{"type": "null"}, {"type": "string"}]})), false),
            (around(json!({"type": "string", "enum": ["not", "oneOf"]})), true),
            (json!({"type": "string"}), false),
            (
                json!({"type": "object", "properties": {"not": {"type": "string"}}, "required": ["not"],
                "additionalProperties": false}),
                true,
            ),
        ];
        for (schema, strict) in table {
            assert_eq!(named("x", &schema)["strict"], strict, "{schema}");
        }
    }

    #[test]
    fn names_are_made_acceptable() {
        for (name, expected) in [("plan_1", "plan_1"), ("a plan.ä", "a_plan__"), ("", "answer")] {
            assert_eq!(named(name, &json!({}))["name"], expected);
        }
        assert_eq!(acceptable(&"x".repeat(100)).len(), MAX_NAME);
    }
}
