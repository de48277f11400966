//! Checking a JSON document against a schema, strictly.
//!
//! The schemas of the contracts and those that extraction is given are of one small part of JSON Schema 2020-12. [`check_schema`] refuses every keyword that
//! [`fits`] would not check, so that no answer passes by a rule that nobody looked at. Objects are closed: a field that the schema does not name is
//! refused whatever the schema says about it. Values out of a list are compared exactly.
//!
//! INVARIANT: messages name places in the schema and never repeat a value, or a name that is not in the schema.

use serde_json::{Map, Value};

use super::check::MAX_CHOICES;

/// Deepest nesting, so that hostile input cannot exhaust the stack.
const MAX_DEPTH: usize = 8;
/// Most bytes of a schema: it goes into a prompt.
const MAX_SCHEMA_BYTES: usize = 16 << 10;
/// Most characters of a text that the schema does not bound itself.
const MAX_STRING_CHARS: usize = 4_000;
/// Most entries of a list that the schema does not bound itself.
const MAX_ITEMS: usize = 256;

/// Keywords that say nothing about what is valid.
const ANNOTATIONS: &[&str] = &["title", "description", "default", "examples", "format", "$schema", "$comment"];
const TYPES: &[&str] = &["null", "boolean", "string", "array", "object", "number", "integer"];

/// Whether fields can be taken out of a text by this schema.
pub(super) fn check_schema(schema: &Value) -> Result<(), String> {
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("has more than {MAX_SCHEMA_BYTES} bytes"));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if schema.get("type").and_then(Value::as_str) != Some("object")
        || properties.is_none_or(|properties| properties.is_empty() || properties.len() > MAX_CHOICES)
    {
        return Err(format!("must be of an object with 1 to {MAX_CHOICES} properties"));
    }
    known(schema, "", 0)
}

fn known(schema: &Value, path: &str, depth: usize) -> Result<(), String> {
    let Value::Object(rules) = schema else { return Err(format!("{} is not a schema", place(path))) };
    if depth > MAX_DEPTH {
        return Err(format!("{} is nested too deeply", place(path)));
    }
    for (keyword, value) in rules {
        let fits = match keyword.as_str() {
            "type" => types(value).is_some_and(|names| names.iter().all(|name| TYPES.contains(name))),
            "properties" => {
                let Some(properties) = value.as_object().filter(|map| map.len() <= MAX_CHOICES) else {
                    return Err(format!(
                        "`properties` of {} must be an object with at most {MAX_CHOICES} entries",
                        place(path)
                    ));
                };
                for (name, property) in properties {
                    known(property, &inner(path, name), depth + 1)?;
                }
                true
            }
            "required" => value.as_array().is_some_and(|names| {
                names.iter().all(|name| name.as_str().is_some_and(|name| property(rules, name).is_some()))
            }),
            // Objects are closed in any case; only the opposite cannot be promised.
            "additionalProperties" => *value == Value::Bool(false),
            "items" => {
                known(value, &format!("{path}[]"), depth + 1)?;
                true
            }
            "anyOf" => {
                let options = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for option in options {
                    known(option, path, depth + 1)?;
                }
                (1..=MAX_CHOICES).contains(&options.len())
            }
            "enum" => value.as_array().is_some_and(|list| !list.is_empty() && list.len() <= 4 * MAX_CHOICES),
            "const" => true,
            "minimum" | "maximum" => value.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
            other => {
                if !ANNOTATIONS.contains(&other) {
                    return Err(format!("`{keyword}` of {} cannot be checked; leave it out", place(path)));
                }
                true
            }
        };
        if !fits {
            return Err(format!("`{keyword}` of {} is invalid", place(path)));
        }
    }
    Ok(())
}

/// Whether a document fits a schema that [`check_schema`] would take.
pub(super) fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    visit(schema, value, "", 0)
}

fn visit(schema: &Value, value: &Value, path: &str, depth: usize) -> Result<(), String> {
    let Value::Object(rules) = schema else { return Err(format!("{} has no schema", place(path))) };
    if depth > MAX_DEPTH {
        return Err(format!("{} is nested too deeply", place(path)));
    }
    if let Some(names) = rules.get("type").and_then(types)
        && !names.iter().any(|name| is_type(name, value))
    {
        return Err(format!("{} must be of type {}", place(path), names.join(" or ")));
    }
    if let Some(Value::Array(allowed)) = rules.get("enum")
        && !allowed.contains(value)
    {
        return Err(format!("{} must be one of the values in the schema, letter for letter", place(path)));
    }
    if rules.get("const").is_some_and(|only| only != value) {
        return Err(format!("{} must be the one value in the schema", place(path)));
    }
    if let Some(Value::Array(options)) = rules.get("anyOf")
        && !options.iter().any(|option| visit(option, value, path, depth + 1).is_ok())
    {
        return Err(format!("{} matches none of its alternatives", place(path)));
    }
    match value {
        Value::Object(fields) => object(rules, fields, path, depth),
        Value::Array(items) => {
            length(rules, items.len(), ("minItems", "maxItems"), MAX_ITEMS, path, "entries")?;
            let alternatives = rules.contains_key("anyOf");
            for (index, item) in items.iter().enumerate() {
                match rules.get("items") {
                    Some(schema) => visit(schema, item, &format!("{path}[{index}]"), depth + 1)?,
                    // The alternative that fitted has looked at them.
                    None if alternatives => {}
                    None => loose(item, &format!("{path}[{index}]"), depth + 1)?,
                }
            }
            Ok(())
        }
        Value::String(text) => {
            length(rules, text.chars().count(), ("minLength", "maxLength"), MAX_STRING_CHARS, path, "characters")
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let bound = |name: &str| rules.get(name).and_then(Value::as_f64);
            let within = number.is_finite()
                && bound("minimum").is_none_or(|least| number >= least)
                && bound("maximum").is_none_or(|most| number <= most);
            if within { Ok(()) } else { Err(format!("{} is out of bounds", place(path))) }
        }
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn object(rules: &Map<String, Value>, fields: &Map<String, Value>, path: &str, depth: usize) -> Result<(), String> {
    let alternatives = rules.contains_key("anyOf") && !rules.contains_key("properties");
    for (name, value) in fields {
        match property(rules, name) {
            Some(schema) => visit(schema, value, &inner(path, name), depth + 1)?,
            None if alternatives => {}
            None => return Err(format!("{} has a field that the schema does not name", place(path))),
        }
    }
    for name in rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Err(format!("`{}` is missing", inner(path, name)));
        }
    }
    Ok(())
}

/// Bounds on what stands in a list of anything.
fn loose(value: &Value, path: &str, depth: usize) -> Result<(), String> {
    match value {
        Value::Object(_) | Value::Array(_) => Err(format!("{} must be a plain value", place(path))),
        scalar => visit(&Value::Object(Map::new()), scalar, path, depth),
    }
}

fn length(
    rules: &Map<String, Value>,
    length: usize,
    (least, most): (&str, &str),
    default: usize,
    path: &str,
    unit: &str,
) -> Result<(), String> {
    let bound = |name: &str| rules.get(name).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
    let (least, most) = (bound(least).unwrap_or(0), bound(most).unwrap_or(default));
    if (least..=most).contains(&length) {
        return Ok(());
    }
    Err(format!("{} has {length} {unit}; {least} to {most} are allowed", place(path)))
}

fn types(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

fn property<'a>(rules: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    rules.get("properties").and_then(|properties| properties.get(name))
}

fn inner(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn place(path: &str) -> String {
    if path.is_empty() { "the document".to_owned() } else { format!("`{path}`") }
}
