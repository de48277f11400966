//! The schema that a model reads: what the checked one says, in as few tokens as it can be said.
//!
//! Every request carries the schemas of all tools on offer, so each keyword is paid for in each turn. Left out is whatever a model does
//! not need in order to write a correct call: generator metadata, number formats and bounds, `null` beside another type, the refusal of
//! unknown fields, and arguments that are marked as rare. Arguments are always checked against the whole schema, so nothing becomes
//! permissible that was not.

use serde_json::{Map, Value};

/// Marks an argument that only people and programs need; models are not told about it.
pub(crate) const RARE: &str = "x-rare";

/// Keywords that help no model to write a call.
const DROPPED: [&str; 10] = [
    "$schema",
    "title",
    "format",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    RARE,
];

/// The schema for the model.
pub(crate) fn offered(schema: &Value) -> Value {
    let Value::Object(rules) = schema else { return schema.clone() };
    if let Some(only) = the_only_type(rules) {
        let mut kept = offered(only);
        if let (Value::Object(kept), Some(description)) = (&mut kept, rules.get("description")) {
            kept.insert("description".to_owned(), terse(description));
        }
        return kept;
    }
    let mut kept = Map::new();
    for (keyword, rule) in rules {
        let rule = match keyword.as_str() {
            dropped if DROPPED.contains(&dropped) => continue,
            "additionalProperties" if rule == &Value::Bool(false) => continue,
            "properties" => named(rule),
            "type" => without_null(rule),
            "enum" => match rule {
                Value::Array(values) => values.iter().filter(|value| !value.is_null()).cloned().collect(),
                other => other.clone(),
            },
            "description" => terse(rule),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => match rule {
                Value::Array(options) => options.iter().map(offered).collect(),
                other => other.clone(),
            },
            "items" | "additionalProperties" => offered(rule),
            _ => rule.clone(),
        };
        kept.insert(keyword.clone(), rule);
    }
    Value::Object(kept)
}

/// The schemas of properties, whose names are no keywords.
fn named(properties: &Value) -> Value {
    let Value::Object(properties) = properties else { return properties.clone() };
    let common = properties.iter().filter(|(_, schema)| schema.get(RARE) != Some(&Value::Bool(true)));
    Value::Object(common.map(|(name, schema)| (name.clone(), offered(schema))).collect())
}

/// Of "this or null", this.
fn the_only_type(rules: &Map<String, Value>) -> Option<&Value> {
    let options = rules.get("anyOf").or_else(|| rules.get("oneOf"))?.as_array()?;
    let mut others = options.iter().filter(|option| option.get("type").and_then(Value::as_str) != Some("null"));
    let only = others.next()?;
    (options.len() == 2 && others.next().is_none()).then_some(only)
}

fn without_null(rule: &Value) -> Value {
    let Value::Array(names) = rule else { return rule.clone() };
    let left: Vec<&Value> = names.iter().filter(|name| name.as_str() != Some("null")).collect();
    match left.as_slice() {
        [one] => (*one).clone(),
        _ => left.into_iter().cloned().collect(),
    }
}

/// A description on one line, without the full stop of a single sentence.
fn terse(description: &Value) -> Value {
    let Value::String(text) = description else { return description.clone() };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = if line.contains(". ") { line.as_str() } else { line.trim_end_matches('.') };
    line.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_model_needs_is_left() {
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "required": ["title"],
            "properties": {
                "title": {"type": "string", "description": "A title of a\nfew words."},
                "limit": {"type": ["integer", "null"], "format": "uint64", "minimum": 1, "default": null},
                "kind": {"anyOf": [{"type": "string", "enum": ["a", "b"], "title": "Kind"}, {"type": "null"}],
                         "description": "Which. Default a."},
                "columns": {"type": "integer", "x-rare": true},
                "env": {"type": "object", "additionalProperties": {"type": "string", "format": "x"}},
                "rows": {"type": "array", "items": {"type": ["string", "integer", "null"]}},
            },
        });
        assert_eq!(
            offered(&whole),
            json!({
                "type": "object",
                "required": ["title"],
                "properties": {
                    "title": {"type": "string", "description": "A title of a few words"},
                    "limit": {"type": "integer"},
                    "kind": {"type": "string", "enum": ["a", "b"], "description": "Which. Default a."},
                    "env": {"type": "object", "additionalProperties": {"type": "string"}},
                    "rows": {"type": "array", "items": {"type": ["string", "integer"]}},
                },
            })
        );
    }
}
