//! JSON Schemas of tools: read from TOML, checked against the draft 2020-12, compiled for the calls.
//!
//! A schema is a stranger's program for our validator. So it is bounded in size and depth, refers to nothing outside itself, its patterns run on an
//! engine whose time is linear in the text, and what a check may cost is counted before it begins.

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::schema_cost::SchemaCost;

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
/// Most looks at one value. References multiply, and a few lines may stand for billions.
const MAX_LOOKS_EACH: u64 = 50_000;
/// Most looks of one check; some seconds of work.
const MAX_LOOKS: u64 = 5_000_000;
/// Most looks of a check whose complaints are told: each look may leave some in memory.
const MAX_LOOKS_EXPLAINED: u64 = 50_000;
/// Deepest nesting of looks: each takes some of the stack.
const MAX_NESTED: u64 = 600;
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A compiled schema.
pub struct SchemaValidator {
    validator: Validator,
    cost: SchemaCost,
}

impl fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaValidator").finish_non_exhaustive()
    }
}

impl SchemaValidator {
    /// Checks and compiles a schema; the error says what is wrong with it.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err("a schema must be a table".to_owned());
        }
        if schema.to_string().len() > MAX_SCHEMA {
            return Err("it is larger than 64 KiB".to_owned());
        }
        let mut patterns = 0;
        check_shape(schema, 0, &mut patterns)?;
        if patterns > MAX_PATTERNS {
            return Err("it has more than 32 patterns".to_owned());
        }
        jsonschema::draft202012::meta::validate(schema).map_err(|error| {
            format!("it is not a valid JSON Schema (2020-12): {error} at `{}`", error.instance_path())
        })?;
        let cost = SchemaCost::of(schema)?;
        let least = cost.least();
        if least.looks > MAX_LOOKS_EACH || least.nested > MAX_NESTED {
            return Err("its references make validation too expensive".to_owned());
        }
        let validator = jsonschema::draft202012::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN))
            .build(schema)
            .map_err(|error| format!("it cannot be compiled: {error}"))?;
        Ok(Self { validator, cost })
    }

    /// Checks a value; the error is a list of complaints that a model can act on.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let cost = self.cost.of_value(value);
        if cost.looks > MAX_LOOKS || cost.nested > MAX_NESTED {
            return Err(vec!["the value: it is too large or too deep for its schema".to_owned()]);
        }
        // Most values fit, and finding that out needs no places and no words.
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if cost.looks > MAX_LOOKS_EXPLAINED {
            return Err(vec!["the value: it does not match the schema".to_owned()]);
        }
        let complaints: Vec<String> =
            self.validator.iter_errors(value).take(MAX_COMPLAINTS).map(|error| complaint(&error)).collect();
        Err(complaints)
    }
}

/// What is wrong with a value and where, without showing it. The two commonest mistakes name the field.
fn complaint(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let mut text = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let fields: Vec<String> = unexpected.iter().map(|field| format!("`{field}`")).collect();
            format!("there is no field {}", fields.join(", "))
        }
        ValidationErrorKind::Required { property } => {
            format!("the field `{}` is missing", property.as_str().unwrap_or_default())
        }
        _ if place.is_empty() => format!("the value: {}", error.masked()),
        _ => error.masked().to_string(),
    };
    text.truncate(text.floor_char_boundary(400));
    if place.is_empty() { text } else { format!("`{place}`: {text}") }
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
                    return Err(format!("`{key}` refers outside the schema"));
                }
                ("$schema", Some(draft)) if draft.trim_end_matches('#') != DRAFT => {
                    return Err(format!("`$schema` is not `{DRAFT}`"));
                }
                ("$id", Some(_)) => return Err("`$id` is not supported".to_owned()),
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
            serde_json::from_str(&text).map_err(|error| format!("the string is not valid JSON: {error}"))
        }
        toml::Value::String(_) => Err("it is larger than 64 KiB".to_owned()),
        table @ toml::Value::Table(_) => to_json(table, 0),
        other => Err(format!("expected a table or a JSON string, found {}", other.type_str())),
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
        toml::Value::Datetime(_) => return Err("dates are not supported in a schema; write it as a string".to_owned()),
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
        assert_eq!(validator.check(&json!({})).unwrap_err(), ["the field `url` is missing"]);
        let inner = json!({"type": "object", "properties": {"b": {}}, "additionalProperties": false});
        let closed = json!({"type": "object", "properties": {"a": inner}});
        let validator = SchemaValidator::compile(&closed).unwrap();
        assert_eq!(validator.check(&json!({"a": {"x": 1, "y": 2}})).unwrap_err(), ["`/a`: there is no field `x`, `y`"]);
        assert!(validator.check(&json!(3)).unwrap_err()[0].starts_with("the value: "));
    }

    /// Definitions of which each names the next one twice.
    fn doubling(keyword: &str, levels: usize) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
            definitions.insert(format!("a{level}"), json!({keyword: [next, next]}));
        }
        definitions.insert(format!("a{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/a0", "$defs": definitions})
    }

    #[test]
    fn a_few_lines_that_stand_for_billions_of_looks_are_refused() {
        for keyword in ["anyOf", "allOf", "oneOf"] {
            let error = SchemaValidator::compile(&doubling(keyword, 28)).unwrap_err();
            assert!(error.contains("too expensive"), "{error}");
            // What is still accepted is also told in bounded memory.
            assert!(SchemaValidator::compile(&doubling(keyword, 12)).unwrap().check(&json!(3)).is_err());
        }
        let chain: serde_json::Map<_, _> = (0..1500)
            .map(|at| (format!("a{at}"), json!({"$ref": format!("#/$defs/a{}", at + 1)})))
            .chain([("a1500".to_owned(), json!({}))])
            .collect();
        assert!(SchemaValidator::compile(&json!({"$ref": "#/$defs/a0", "$defs": chain})).is_err());
    }

    #[test]
    fn a_tree_is_checked_as_deep_as_that_can_be_done_in_time() {
        let both = json!([{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 1}]);
        let validator = SchemaValidator::compile(&json!({"oneOf": both})).unwrap();
        let deep = |levels: usize| (0..levels).fold(json!([]), |value, _| json!([value]));
        // Of the two alternatives both fit where something is inside, so each level asks both of the next.
        let known = |value: &Value| validator.check(value).err().map(|why| why.join(" "));
        assert_eq!(known(&deep(0)), None);
        assert!(known(&deep(100)).is_some_and(|why| why.contains("too large or too deep")));
        // A list of lists is no such tree and may be as deep as JSON may be.
        let plain = SchemaValidator::compile(&json!({"type": "array", "items": {"$ref": "#"}})).unwrap();
        plain.check(&deep(120)).unwrap();
    }

    #[test]
    fn the_deepest_check_that_is_accepted_fits_on_a_small_stack() {
        let length = 290;
        let mut chain: serde_json::Map<_, _> = (0..length)
            .map(|at| (format!("a{at}"), json!({"allOf": [{"$ref": format!("#/$defs/a{}", at + 1)}]})))
            .collect();
        chain.insert(format!("a{length}"), json!({"type": "string"}));
        let schema = json!({"$ref": "#/$defs/a0", "$defs": chain});
        let work = move || {
            let validator = SchemaValidator::compile(&schema).unwrap();
            validator.check(&json!("text")).unwrap();
            assert!(validator.check(&json!(3)).is_err());
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
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
            json!({"$ref": "#"}),
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
