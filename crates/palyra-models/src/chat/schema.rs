//! Shapes of answers, as OpenAI's wires have them.
//!
//! A strict schema is enforced while the model writes. One that cannot be strict goes along as advice; whoever asked checks the answer
//! in either case.

use serde_json::{Map, Value, json};

use crate::schema::{SchemaDialect, answer, openai_answer};

/// Longest name of a shape.
const MAX_NAME: usize = 64;

/// Name, schema and strictness, beside each other as the Responses API has them.
pub(crate) fn named(name: &str, schema: &Value, dialect: SchemaDialect) -> Map<String, Value> {
    // Servers that are not OpenAI's hold every answer to its schema, or none; in either case they want the portable form of it.
    let strict = openai_answer(schema);
    let is_strict = strict.is_some();
    let schema = strict.filter(|_| dialect == SchemaDialect::OpenAi).unwrap_or_else(|| answer(schema, dialect));
    let mut fields = Map::new();
    fields.insert("name".to_owned(), acceptable(name).into());
    fields.insert("schema".to_owned(), schema);
    fields.insert("strict".to_owned(), is_strict.into());
    fields
}

/// `response_format` of chat completions.
pub(super) fn response_format(name: &str, schema: &Value, dialect: SchemaDialect) -> Value {
    json!({ "type": "json_schema", "json_schema": named(name, schema, dialect) })
}

/// The name with what is not allowed replaced.
fn acceptable(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(MAX_NAME).map(keep).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
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
            assert_eq!(named("x", &schema, SchemaDialect::Portable)["strict"], strict, "{schema}");
        }
    }

    #[test]
    fn names_are_made_acceptable() {
        for (name, expected) in [("plan_1", "plan_1"), ("a plan.ä", "a_plan__"), ("", "answer")] {
            assert_eq!(named(name, &json!({}), SchemaDialect::Portable)["name"], expected);
        }
        assert_eq!(acceptable(&"x".repeat(100)).len(), MAX_NAME);
    }
}
