//! Checks arguments against the schemas that input structs generate, with messages a model can act on.
//!
//! Here is the part of JSON Schema 2020-12 that `schemars` writes for argument structs: types, properties, required and unknown
//! fields, enumerations, bounds, arrays, references and alternatives; `keywords` has the rest, which other people's tools use. Whatever a
//! schema says is therefore enforced here, also where a model could not be told of it. Formats alone are advice, as the standard has them.

mod keywords;

use palyra_common::FieldError;
use serde_json::{Map, Value};

use crate::registry::nearest;

/// Deepest nesting that is looked at; deeper input is refused, so that hostile input cannot exhaust the stack.
const MAX_DEPTH: usize = 32;

/// Everything wrong with `value`; empty when it fits.
pub fn check(schema: &Value, value: &Value) -> Vec<FieldError> {
    let mut checker = Checker { root: schema, errors: Vec::new(), steps: 0, exhausted: false };
    checker.visit(schema, value, "", 0);
    // What a `not` or an `if` could not be held against to its end proves nothing.
    if checker.exhausted && checker.errors.is_empty() {
        checker.too_deep("");
    }
    checker.errors
}

struct Checker<'a> {
    root: &'a Value,
    errors: Vec<FieldError>,
    /// Schemas that the value was held against so far.
    steps: usize,
    /// Whether something was not held against its schema to the end.
    exhausted: bool,
}

impl<'a> Checker<'a> {
    fn fail(&mut self, path: &str, code: &str, message: String) {
        let field = if path.is_empty() { "arguments" } else { path };
        self.errors.push(FieldError { field: field.to_owned(), code: code.to_owned(), message });
    }

    fn too_deep(&mut self, path: &str) {
        self.exhausted = true;
        let what = if path.is_empty() { "the arguments are".to_owned() } else { format!("`{path}` is") };
        self.fail(path, "too_deep", format!("{what} nested too deeply, or the schema is too complex to check against"));
    }

    fn visit(&mut self, schema: &'a Value, value: &Value, path: &str, depth: usize) {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > keywords::MAX_STEPS {
            self.too_deep(path);
            return;
        }
        let Value::Object(rules) = schema else {
            if schema == &Value::Bool(false) {
                self.fail(path, "not_allowed", format!("{} is not allowed", shown(path)));
            }
            return;
        };
        if let Some(Value::String(reference)) = rules.get("$ref") {
            match reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                Some(target) => self.visit(target, value, path, depth + 1),
                None => self.fail(path, "bad_schema", format!("the schema of {} cannot be resolved", shown(path))),
            }
        }
        self.combined(rules, value, path, depth);
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(options)) = rules.get(keyword) {
                self.any_of(options, value, path, depth);
            }
        }
        if !self.right_type(rules, value, path) {
            return;
        }
        if let Some(Value::Array(allowed)) = rules.get("enum")
            && !allowed.contains(value)
            && !matches_loosely(allowed, value)
        {
            self.fail(path, "not_one_of", format!("{} must be one of {}", shown(path), joined(allowed)));
        }
        self.bounds(rules, value, path);
        self.more_bounds(rules, value, path);
        match value {
            Value::Object(fields) => {
                self.object(rules, fields, path, depth);
                self.more_properties(rules, fields, path, depth);
            }
            Value::Array(items) => {
                self.more_items(rules, items, path, depth);
                let before = rules.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                if let Some(item_schema) = rules.get("items") {
                    for (index, item) in items.iter().enumerate().skip(before) {
                        self.visit(item_schema, item, &format!("{path}[{index}]"), depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn any_of(&mut self, options: &'a [Value], value: &Value, path: &str, depth: usize) {
        let mut closest: Option<Vec<FieldError>> = None;
        for option in options {
            let mut attempt = Checker { errors: Vec::new(), ..*self };
            attempt.visit(option, value, path, depth + 1);
            (self.steps, self.exhausted) = (attempt.steps, attempt.exhausted);
            if attempt.errors.is_empty() {
                return;
            }
            if closest.as_ref().is_none_or(|best| attempt.errors.len() < best.len()) {
                closest = Some(attempt.errors);
            }
        }
        self.errors.extend(closest.unwrap_or_default());
    }

    fn right_type(&mut self, rules: &Map<String, Value>, value: &Value, path: &str) -> bool {
        let wanted: Vec<&str> = match rules.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        if wanted.iter().any(|name| is_type(name, value)) {
            return true;
        }
        let expected: Vec<_> = wanted.iter().copied().filter(|name| *name != "null").map(with_article).collect();
        let expected = expected.join(" or ");
        self.fail(path, "wrong_type", format!("{} must be {expected}, not {}", shown(path), type_of(value)));
        false
    }

    fn bounds(&mut self, rules: &Map<String, Value>, value: &Value, path: &str) {
        let bound = |name: &str| rules.get(name).and_then(Value::as_f64);
        if let Some(number) = value.as_f64() {
            if let Some(minimum) = bound("minimum").filter(|minimum| number < *minimum) {
                self.fail(path, "too_small", format!("{} must be at least {minimum}", shown(path)));
            }
            if let Some(maximum) = bound("maximum").filter(|maximum| number > *maximum) {
                self.fail(path, "too_large", format!("{} must be at most {maximum}", shown(path)));
            }
        }
        let (length, smallest, largest) = match value {
            Value::String(text) => (text.chars().count(), "minLength", "maxLength"),
            Value::Array(items) => (items.len(), "minItems", "maxItems"),
            _ => return,
        };
        #[expect(clippy::cast_precision_loss, reason = "lengths are compared, not computed with")]
        let length = length as f64;
        if bound(smallest).is_some_and(|minimum| length < minimum) {
            self.fail(path, "too_short", format!("{} is too short", shown(path)));
        }
        if bound(largest).is_some_and(|maximum| length > maximum) {
            self.fail(path, "too_long", format!("{} is too long", shown(path)));
        }
    }

    fn object(&mut self, rules: &'a Map<String, Value>, fields: &Map<String, Value>, path: &str, depth: usize) {
        let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let properties = rules.get("properties").and_then(Value::as_object);
        for (name, value) in fields {
            let full = inner(name);
            if let Some(property) = properties.and_then(|known| known.get(name)) {
                self.visit(property, value, &full, depth + 1);
                continue;
            }
            if self.is_patterned(rules, name, path) {
                continue;
            }
            match rules.get("additionalProperties") {
                Some(Value::Bool(false)) => {
                    let known = properties.into_iter().flat_map(|known| known.keys().map(String::as_str));
                    let advice = match nearest(name, known.clone()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
                    };
                    self.fail(&full, "unknown_argument", format!("there is no argument `{full}`; {advice}"));
                }
                Some(extra) => self.visit(extra, value, &full, depth + 1),
                None => {}
            }
        }
        for name in rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                let full = inner(name);
                self.fail(&full, "missing_argument", format!("argument `{full}` is missing"));
            }
        }
    }
}

/// Contract enums read any case and separator; the schema lists canonical names only.
fn matches_loosely(allowed: &[Value], value: &Value) -> bool {
    let fold = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    // Of `.` and `../..` nothing would be left to compare.
    let same = |name: &str, text: &str| !fold(name).is_empty() && fold(name) == fold(text);
    value.as_str().is_some_and(|text| allowed.iter().filter_map(Value::as_str).any(|name| same(name, text)))
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
        _ => true,
    }
}

fn with_article(name: &str) -> String {
    let article = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn shown(path: &str) -> String {
    if path.is_empty() { "the arguments".to_owned() } else { format!("`{path}`") }
}

fn joined(values: &[Value]) -> String {
    values.iter().map(|value| format!("`{}`", value.as_str().unwrap_or_default())).collect::<Vec<_>>().join(", ")
}
