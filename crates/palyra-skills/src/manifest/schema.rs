//! JSON Schemas of tools: read from TOML, checked against the draft 2020-12, compiled for the calls.
//!
//! A schema is a stranger's program for our validator. So it is bounded in size and depth, refers to nothing outside itself, and its patterns run on an
//! engine whose time is linear in the text.

use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Largest schema, as JSON.
const MAX_SCHEMA: usize = 64 << 10;
/// Deepest nesting.
const MAX_DEPTH: usize = 32;
/// Complaints that are told about one value.
const MAX_COMPLAINTS: usize = 8;
/// Largest compiled pattern.
const MAX_PATTERN: usize = 256 << 10;
/// Most patterns of one schema: a few letters may stand for a large automaton.
const MAX_PATTERNS: usize = 32;
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A compiled schema.
pub struct SchemaValidator(Validator);

impl fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaValidator").finish_non_exhaustive()
    }
}

impl SchemaValidator {
    /// Checks and compiles a schema; the error says what is wrong with it.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err("a schema is a table".to_owned());
        }
        if schema.to_string().len() > MAX_SCHEMA {
            return Err("it is larger than 64 KiB".to_owned());
        }
        let mut patterns = 0;
        check_shape(schema, 0, &mut patterns)?;
        if patterns > MAX_PATTERNS {
            return Err("it has more than 32 patterns".to_owned());
        }
        jsonschema::draft202012::meta::validate(schema)
            .map_err(|error| format!("it is not a JSON Schema of 2020-12: {error} at `{}`", error.instance_path()))?;
        jsonschema::draft202012::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN))
            .build(schema)
            .map(Self)
            .map_err(|error| format!("it cannot be compiled: {error}"))
    }

    /// Checks a value; the error is a list of complaints that a model can act on.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        // Most values fit, and finding that out needs no places and no words.
        if self.0.is_valid(value) {
            return Ok(());
        }
        let complaints: Vec<String> = self
            .0
            .iter_errors(value)
            .take(MAX_COMPLAINTS)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "the value".to_owned() } else { format!("`{place}`") };
                let mut complaint = error.masked().to_string();
                complaint.truncate(complaint.floor_char_boundary(400));
                format!("{place}: {complaint}")
            })
            .collect();
        Err(complaints)
    }
}

/// Depth, patterns, and references: only to places inside the schema itself.
fn check_shape(value: &Value, depth: usize, patterns: &mut usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("it is nested deeper than 32 levels".to_owned());
    }
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| check_shape(value, depth + 1, patterns)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            match (key.as_str(), value.as_str()) {
                ("$ref" | "$dynamicRef", Some(target)) if !target.starts_with('#') => {
                    return Err(format!("`{key}` leads outside the schema"));
                }
                ("$schema", Some(draft)) if draft.trim_end_matches('#') != DRAFT => {
                    return Err(format!("`$schema` is not `{DRAFT}`"));
                }
                ("$id", Some(_)) => return Err("`$id` is not used here".to_owned()),
                _ => {}
            }
            *patterns += match key.as_str() {
                "pattern" => 1,
                "patternProperties" => value.as_object().map_or(0, serde_json::Map::len),
                _ => 0,
            };
            check_shape(value, depth + 1, patterns)
        }),
        _ => Ok(()),
    }
}

/// A value of a manifest as JSON: a table as it stands, or a text that holds JSON.
pub(crate) fn from_toml(value: toml::Value) -> Result<Value, String> {
    match value {
        toml::Value::String(text) if text.len() <= MAX_SCHEMA => {
            serde_json::from_str(&text).map_err(|error| format!("the text is not JSON: {error}"))
        }
        toml::Value::String(_) => Err("it is larger than 64 KiB".to_owned()),
        table @ toml::Value::Table(_) => to_json(table, 0),
        other => Err(format!("expected a table or a text with JSON, found {}", other.type_str())),
    }
}

fn to_json(value: toml::Value, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("it is nested deeper than 32 levels".to_owned());
    }
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(number).map(Value::Number).ok_or("a number is not finite")?
        }
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(_) => return Err("a date has no place in a schema; write it as a text".to_owned()),
        toml::Value::Array(values) => {
            Value::Array(values.into_iter().map(|value| to_json(value, depth + 1)).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| to_json(value, depth + 1).map(|value| (key, value)))
                .collect::<Result<_, _>>()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn complaints_name_the_place() {
        let schema = json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string", "pattern": "^https://"}}});
        let validator = SchemaValidator::compile(&schema).unwrap();
        validator.check(&json!({"url": "https://a"})).unwrap();
        let complaints = validator.check(&json!({"url": 3})).unwrap_err();
        assert!(complaints[0].starts_with("`/url`: "), "{complaints:?}");
        assert_eq!(validator.check(&json!({})).unwrap_err().len(), 1);
    }

    #[test]
    fn bad_schemas_are_refused() {
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"properties": {"a": deep}});
        }
        for bad in [
            json!(3),
            json!({"type": "strin"}),
            json!({"$ref": "https://example.com/schema"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"pattern": "(?=a)(b"}),
            json!({"pattern": "(a{1000}){1000}"}),
            json!({"description": "x".repeat(70_000)}),
            json!({"allOf": vec![json!({"pattern": "a{9}"}); 40]}),
            deep,
        ] {
            assert!(SchemaValidator::compile(&bad).is_err(), "{}", &bad.to_string()[..bad.to_string().len().min(100)]);
        }
    }
}
