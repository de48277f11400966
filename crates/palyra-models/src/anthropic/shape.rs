//! Answers of a given shape.
//!
//! Newer models take a JSON Schema for their answer, but of a strict kind: objects are closed, bounds of numbers, texts and lists are not
//! known. Bounds are left out here, since whoever asked checks the answer anyway; a schema whose meaning would
//! change (open objects, recursion) is not sent this way. For it, and for models that take none, there is a tool that takes
//! the answer as its input.

use serde_json::{Map, Value, json};

use crate::schema_refs::inlined;

/// Keywords that the strict form knows and that are copied as they are.
const PLAIN: &[&str] = &["type", "description", "title", "enum", "const", "default", "required"];
/// Formats of texts that it knows.
const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The schema in the strict form; none if it cannot be said so.
pub(super) fn strict(schema: &Value) -> Option<Value> {
    closed(&inlined(schema)?)
}

fn closed(schema: &Value) -> Option<Value> {
    let fields = schema.as_object()?;
    let mut strict = Map::new();
    for (name, value) in fields {
        match name.as_str() {
            plain if PLAIN.contains(&plain) => {
                strict.insert(name.clone(), value.clone());
            }
            "format" if value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                strict.insert(name.clone(), value.clone());
            }
            "items" => {
                strict.insert(name.clone(), closed(value)?);
            }
            "anyOf" | "oneOf" | "allOf" => {
                let branches = value.as_array()?.iter().map(closed).collect::<Option<Vec<_>>>()?;
                let name = if name == "oneOf" { "anyOf" } else { name };
                strict.insert(name.to_owned(), branches.into());
            }
            "properties" => {
                let properties = value.as_object()?.iter().map(|(name, value)| Some((name.clone(), closed(value)?)));
                strict.insert(name.clone(), Value::Object(properties.collect::<Option<_>>()?));
            }
            // Open objects hold what nobody can name beforehand.
            "additionalProperties" if *value != Value::Bool(false) => return None,
            "patternProperties" | "propertyNames" | "not" | "if" | "then" | "else" | "prefixItems" | "$dynamicRef" => {
                return None;
            }
            _ => {}
        }
    }
    let is_object = match fields.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => fields.contains_key("properties"),
    };
    if is_object {
        // An object without properties stands for anything.
        strict.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty())?;
        strict.insert("additionalProperties".to_owned(), false.into());
    }
    Some(Value::Object(strict))
}

/// The tool that takes an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerTool {
    /// Its name on the wire.
    pub(super) name: String,
    /// How the answer lies in its input.
    pub(super) holds: Holds,
}

/// How an answer lies in a tool's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The input is the answer.
    Answer,
    /// The input is an object whose field `answer` is it: tools take objects only.
    Wrapped,
}

impl AnswerTool {
    /// A tool for an answer of this name and shape, with a name that no other tool has.
    pub(super) fn new(name: &str, schema: &Value, taken: &[String]) -> Self {
        let clean: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(48).collect();
        let wanted = format!("give_{clean}");
        let others = (2_usize..).map(|n| format!("{wanted}_{n}"));
        let free = std::iter::once(wanted.clone()).chain(others).find(|name| !taken.contains(name));
        let holds =
            if schema.get("type").is_some_and(|kind| kind == "object") { Holds::Answer } else { Holds::Wrapped };
        Self { name: free.unwrap_or(wanted), holds }
    }

    /// The tool as it is declared.
    pub(super) fn declaration(&self, schema: &Value) -> Value {
        let input = match self.holds {
            Holds::Answer => schema.clone(),
            Holds::Wrapped => json!({ "type": "object", "properties": { "answer": schema }, "required": ["answer"] }),
        };
        json!({
            "name": self.name,
            "description": "Give the answer. Call this once, when the answer is complete; its input is the answer.",
            "input_schema": input,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_schemas_lose_their_bounds_and_nothing_else() {
        let schema = json!({
            "$schema": "x",
            "$defs": {"tag": {"type": "string", "maxLength": 5, "format": "uuid"}},
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": ["integer", "null"], "minimum": 1, "description": "how many"},
                "b": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 3},
                "c": {"oneOf": [{"const": 1}, {"enum": ["x"]}]},
                "d": {"type": "string", "format": "regex", "pattern": "^x"},
            },
        });
        assert_eq!(
            strict(&schema).unwrap(),
            json!({
                "type": "object",
                "required": ["a"],
                "additionalProperties": false,
                "properties": {
                    "a": {"type": ["integer", "null"], "description": "how many"},
                    "b": {"type": "array", "items": {"type": "string", "format": "uuid"}},
                    "c": {"anyOf": [{"const": 1}, {"enum": ["x"]}]},
                    "d": {"type": "string"},
                },
            })
        );
    }

    #[test]
    fn what_would_change_its_meaning_is_not_sent() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "object", "properties": {}}}),
            json!({"type": "object", "properties": {"a": true}}),
            json!({"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}),
            json!({"not": {"type": "string"}}),
            json!(true),
        ] {
            assert_eq!(strict(&schema), None, "{schema}");
        }
    }

    #[test]
    fn the_tool_has_a_name_of_its_own_and_takes_an_object() {
        let object = json!({"type": "object"});
        assert_eq!(AnswerTool::new("judge ment", &object, &[]).name, "give_judge_ment");
        let tool = AnswerTool::new("x", &object, &["give_x".into(), "give_x_2".into()]);
        assert_eq!((tool.name.as_str(), tool.holds), ("give_x_3", Holds::Answer));
        assert_eq!(tool.declaration(&object)["input_schema"], object);
        let list = json!({"type": "array"});
        let tool = AnswerTool::new("x", &list, &[]);
        assert_eq!(tool.holds, Holds::Wrapped);
        assert_eq!(tool.declaration(&list)["input_schema"]["properties"]["answer"], list);
    }
}
