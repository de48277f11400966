//! JSON Schemas as Gemini takes them.
//!
//! Two ways: newer models read JSON Schema itself, of which a list of keywords is documented; older ones read a subset of
//! OpenAPI's schemas, where a type is one word, nothing is a reference and enumerations are of strings. What either does not know is left out: a
//! tool checks its arguments itself, so a looser schema costs a wrong call at worst.

use serde_json::{Map, Value, json};

use crate::schema_refs::inlined;

/// Keywords of JSON Schema that are documented.
const KNOWN: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "default",
];
/// Keywords of the OpenAPI subset that are copied as they are.
const PLAIN: &[&str] = &[
    "title",
    "description",
    "default",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
];
/// Formats that the subset knows; any other is refused.
const FORMATS: &[&str] = &["enum", "date-time", "int32", "int64", "float", "double"];
/// Deepest nesting of the subset that is followed.
const MAX_DEPTH: usize = 32;

/// The schema in the documented keywords of JSON Schema.
pub(super) fn json_schema(schema: &Value) -> Value {
    // A schema that refers to itself cannot be written out; any object is the next best thing to say.
    inlined(schema).map_or_else(|| json!({ "type": "object" }), |schema| known(&schema))
}

fn known(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut kept = Map::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, value)| (name.clone(), known(value)));
                kept.insert(name.clone(), Value::Object(properties.collect()));
            }
            ("items" | "additionalProperties", _) => {
                kept.insert(name.clone(), known(value));
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(branches)) => {
                kept.insert(name.clone(), branches.iter().map(known).collect());
            }
            ("const", _) => {
                kept.insert("enum".to_owned(), json!([value]));
            }
            (keyword, _) if KNOWN.contains(&keyword) => {
                kept.insert(name.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

/// The schema in the OpenAPI subset; none if it says nothing, as for a tool without arguments.
pub(super) fn open_api(schema: &Value) -> Option<Value> {
    let subset = subset(&inlined(schema)?, 0);
    let empty = subset.get("type").is_some_and(|kind| kind == "object") && subset.get("properties").is_none();
    (!empty).then_some(subset)
}

fn subset(schema: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return json!({ "type": "string" }) };
    let mut fields = fields.clone();
    // All of several schemas: their keywords together.
    if let Some(Value::Array(parts)) = fields.remove("allOf") {
        for part in parts.iter().filter_map(Value::as_object) {
            merge(&mut fields, part);
        }
    }
    let mut kept: Map<String, Value> =
        fields.iter().filter(|(name, _)| PLAIN.contains(&name.as_str())).map(|(n, v)| (n.clone(), v.clone())).collect();
    let (kind, nullable) = kind_of(&fields);
    if nullable {
        kept.insert("nullable".to_owned(), true.into());
    }
    if let Some(format) = fields.get("format").filter(|format| format.as_str().is_some_and(|f| FORMATS.contains(&f))) {
        kept.insert("format".to_owned(), format.clone());
    }
    let branches = ["anyOf", "oneOf"].iter().find_map(|name| fields.get(*name).and_then(Value::as_array));
    if let Some(branches) = branches {
        let real: Vec<&Value> = branches.iter().filter(|branch| branch.get("type") != Some(&json!("null"))).collect();
        if real.len() < branches.len() {
            kept.insert("nullable".to_owned(), true.into());
        }
        match real.as_slice() {
            [only] => {
                if let Value::Object(only) = subset(only, depth + 1) {
                    merge(&mut kept, &only);
                }
            }
            several => {
                kept.insert("anyOf".to_owned(), several.iter().map(|branch| subset(branch, depth + 1)).collect());
            }
        }
        return Value::Object(kept);
    }
    let choices = fields.get("enum").and_then(Value::as_array).cloned();
    let choices = choices.or_else(|| fields.get("const").map(|only| vec![only.clone()]));
    let kind = kind.unwrap_or_else(|| implied(&fields, choices.as_deref()));
    if let Some(choices) = choices {
        if kind == "string" {
            let texts = choices.iter().filter(|choice| choice.is_string()).cloned();
            kept.insert("enum".to_owned(), texts.collect());
        } else {
            // Enumerations of anything but strings are refused; said in words they are not lost.
            let said = kept.get("description").and_then(Value::as_str).unwrap_or_default();
            let words = format!("{said} One of {}.", Value::Array(choices)).trim_start().to_owned();
            kept.insert("description".to_owned(), words.into());
        }
    }
    match kind.as_str() {
        "array" => {
            let items =
                fields.get("items").map_or_else(|| json!({ "type": "string" }), |items| subset(items, depth + 1));
            kept.insert("items".to_owned(), items);
        }
        "object" => {
            let properties = fields.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty());
            if let Some(properties) = properties {
                let subset = properties.iter().map(|(name, value)| (name.clone(), subset(value, depth + 1)));
                kept.insert("properties".to_owned(), Value::Object(subset.collect()));
                let required = fields.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let named = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
                let required: Vec<Value> = required.iter().filter(named).cloned().collect();
                if !required.is_empty() {
                    kept.insert("required".to_owned(), required.into());
                }
            }
        }
        _ => {}
    }
    kept.insert("type".to_owned(), kind.into());
    Value::Object(kept)
}

/// The one type that is not null, and whether null is allowed besides.
fn kind_of(fields: &Map<String, Value>) -> (Option<String>, bool) {
    match fields.get("type") {
        Some(Value::String(kind)) => (Some(kind.clone()), false),
        Some(Value::Array(kinds)) => {
            let nullable = kinds.iter().any(|kind| kind == "null");
            (kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").map(str::to_owned), nullable)
        }
        _ => (None, false),
    }
}

fn implied(fields: &Map<String, Value>, choices: Option<&[Value]>) -> String {
    let kind = match choices.and_then(<[Value]>::first) {
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(number)) => {
            if number.is_f64() {
                "number"
            } else {
                "integer"
            }
        }
        Some(_) => "string",
        None if fields.contains_key("properties") => "object",
        None if fields.contains_key("items") => "array",
        None => "string",
    };
    kind.to_owned()
}

/// Adds what is not there yet; properties and required names of both are kept.
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(mine)), Value::Object(more)) => {
                mine.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            (Some(Value::Array(mine)), Value::Array(more)) if name == "required" => mine.extend(more.iter().cloned()),
            (Some(_), _) => {}
            (None, _) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_models_get_the_documented_keywords() {
        let schema = json!({
            "$schema": "x",
            "$defs": {"p": {"type": "string", "pattern": "^a"}},
            "type": "object",
            "additionalProperties": false,
            "required": ["a"],
            "properties": {
                "a": {"$ref": "#/$defs/p"},
                "pattern": {"const": 1, "examples": [1]},
                "list": {"type": "array", "items": {"type": ["integer", "null"], "multipleOf": 2}},
            },
        });
        assert_eq!(
            json_schema(&schema),
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["a"],
                "properties": {
                    "a": {"type": "string"},
                    "pattern": {"enum": [1]},
                    "list": {"type": "array", "items": {"type": ["integer", "null"]}},
                },
            })
        );
        let endless = json!({"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"});
        assert_eq!(json_schema(&endless), json!({"type": "object"}));
    }

    #[test]
    fn older_models_get_the_open_api_subset() {
        let table = [
            (json!({"type": ["string", "null"], "format": "uri"}), json!({"type": "string", "nullable": true})),
            (json!({"const": "x"}), json!({"type": "string", "enum": ["x"]})),
            (
                json!({"type": "integer", "enum": [1, 2], "description": "How."}),
                json!({"type": "integer", "description": "How. One of [1,2]."}),
            ),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "d"}),
                json!({"type": "string", "nullable": true, "description": "d"}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "integer", "format": "int64"}]}),
                json!({"anyOf": [{"type": "string"}, {"type": "integer", "format": "int64"}]}),
            ),
            (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}})),
            (
                json!({"allOf": [{"properties": {"a": {"type": "number"}}, "required": ["a"]},
                                 {"properties": {"b": true}, "required": ["b", "c"]}], "additionalProperties": false}),
                json!({"type": "object", "required": ["a", "b"],
                       "properties": {"a": {"type": "number"}, "b": {"type": "string"}}}),
            ),
        ];
        for (schema, expected) in table {
            assert_eq!(open_api(&schema), Some(expected), "{schema}");
        }
        assert_eq!(open_api(&json!({"type": "object", "properties": {}})), None);
    }
}
