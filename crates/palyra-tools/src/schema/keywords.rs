//! The keywords that argument structs of our own do not generate, and that tools of skills, MCP servers and clients use.
//!
//! A wire may be unable to tell a model of them, so they are checked here, where every call comes in. Work is bounded by the depth of the
//! value and by [`MAX_STEPS`]; a pattern that cannot be compiled is passed over, since a call is not at fault for it.

use std::collections::HashSet;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{Checker, matches_loosely, shown};

/// Most schemas that one call is held against. Alternatives within alternatives multiply.
pub(super) const MAX_STEPS: usize = 50_000;
/// What holding a text against a pattern counts for.
const PATTERN_STEPS: usize = 20;
/// Largest compiled pattern in bytes.
const MAX_PATTERN: usize = 256 * 1024;

impl<'a> Checker<'a> {
    /// Whether a value fits, without saying why not.
    fn fits(&mut self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let mut attempt = Checker { errors: Vec::new(), ..*self };
        attempt.visit(schema, value, "", depth + 1);
        (self.steps, self.exhausted) = (attempt.steps, attempt.exhausted);
        attempt.errors.is_empty()
    }

    /// Combinations of schemas, and constants.
    pub(super) fn combined(&mut self, rules: &'a Map<String, Value>, value: &Value, path: &str, depth: usize) {
        if let Some(only) = rules.get("const")
            && only != value
            && !matches_loosely(std::slice::from_ref(only), value)
        {
            self.fail(path, "not_one_of", format!("{} must be `{only}`", shown(path)));
        }
        for schema in list(rules, "allOf") {
            self.visit(schema, value, path, depth + 1);
        }
        if let Some(not) = rules.get("not")
            && self.fits(not, value, depth)
        {
            self.fail(path, "not_allowed", format!("{} has a value that its schema excludes", shown(path)));
        }
        if let Some(condition) = rules.get("if") {
            let branch = if self.fits(condition, value, depth) { "then" } else { "else" };
            if let Some(schema) = rules.get(branch) {
                self.visit(schema, value, path, depth + 1);
            }
        }
        // Names are compared loosely, so only what has structure can fit two of them by mistake.
        let options = list(rules, "oneOf");
        if options.len() > 1 && (value.is_object() || value.is_array()) {
            let fitting = options.iter().filter(|option| self.fits(option, value, depth)).count();
            if fitting > 1 {
                self.fail(
                    path,
                    "ambiguous",
                    format!("{} fits {fitting} of the forms of which it must be one", shown(path)),
                );
            }
        }
    }

    /// Bounds of numbers, texts and lists.
    pub(super) fn more_bounds(&mut self, rules: &'a Map<String, Value>, value: &Value, path: &str) {
        let bound = |name: &str| rules.get(name).and_then(Value::as_f64);
        if let Some(number) = value.as_f64() {
            if let Some(least) = bound("exclusiveMinimum").filter(|least| number <= *least) {
                self.fail(path, "too_small", format!("{} must be more than {least}", shown(path)));
            }
            if let Some(most) = bound("exclusiveMaximum").filter(|most| number >= *most) {
                self.fail(path, "too_large", format!("{} must be less than {most}", shown(path)));
            }
            if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
                let times = number / step;
                if (times - times.round()).abs() > 1e-9 {
                    self.fail(path, "wrong_step", format!("{} must be a multiple of {step}", shown(path)));
                }
            }
        }
        if let (Some(text), Some(pattern)) = (value.as_str(), rules.get("pattern").and_then(Value::as_str))
            && !self.matches(pattern, text, path)
        {
            self.fail(path, "wrong_form", format!("{} must match the pattern `{pattern}`", shown(path)));
        }
    }

    /// What is said about single items of a list.
    pub(super) fn more_items(&mut self, rules: &'a Map<String, Value>, items: &[Value], path: &str, depth: usize) {
        for (index, (schema, item)) in list(rules, "prefixItems").iter().zip(items).enumerate() {
            self.visit(schema, item, &format!("{path}[{index}]"), depth + 1);
        }
        if rules.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::new();
            if items.iter().any(|item| !seen.insert(item)) {
                self.fail(path, "repeated", format!("{} must not repeat an item", shown(path)));
            }
        }
        if let Some(contained) = rules.get("contains") {
            let least = rules.get("minContains").and_then(Value::as_u64).unwrap_or(1);
            let most = rules.get("maxContains").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let count = items.iter().filter(|item| self.fits(contained, item, depth)).count();
            if !(least..=most).contains(&u64::try_from(count).unwrap_or(u64::MAX)) {
                self.fail(path, "wrong_items", format!("{} does not hold the items that it must", shown(path)));
            }
        }
    }

    /// What is said about names and numbers of properties.
    pub(super) fn more_properties(
        &mut self,
        rules: &'a Map<String, Value>,
        fields: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) {
        let count = u64::try_from(fields.len()).unwrap_or(u64::MAX);
        let bound = |name: &str| rules.get(name).and_then(Value::as_u64);
        if bound("minProperties").is_some_and(|least| count < least) {
            self.fail(path, "too_short", format!("{} has too few properties", shown(path)));
        }
        if bound("maxProperties").is_some_and(|most| count > most) {
            self.fail(path, "too_long", format!("{} has too many properties", shown(path)));
        }
        for (name, value) in fields {
            if let Some(names) = rules.get("propertyNames")
                && !self.fits(names, &Value::String(name.clone()), depth)
            {
                self.fail(path, "unknown_argument", format!("{} must not have the property `{name}`", shown(path)));
            }
            for (pattern, schema) in object(rules, "patternProperties") {
                if self.matches(pattern, name, path) {
                    let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.visit(schema, value, &inner, depth + 1);
                }
            }
        }
        for (name, needed) in object(rules, "dependentRequired").filter(|(name, _)| fields.contains_key(*name)) {
            for other in needed.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !fields.contains_key(other) {
                    self.fail(path, "missing_argument", format!("argument `{other}` is missing beside `{name}`"));
                }
            }
        }
    }
}

impl Checker<'_> {
    /// Whether a text matches. Compiling a pattern is work that counts.
    fn matches(&mut self, pattern: &str, text: &str, path: &str) -> bool {
        self.steps += PATTERN_STEPS;
        if self.steps > MAX_STEPS {
            self.too_deep(path);
            return true;
        }
        matches(pattern, text)
    }

    /// Whether a name is one that patterns speak of.
    pub(super) fn is_patterned(&mut self, rules: &Map<String, Value>, name: &str, path: &str) -> bool {
        object(rules, "patternProperties").any(|(pattern, _)| self.matches(pattern, name, path))
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    RegexBuilder::new(pattern).size_limit(MAX_PATTERN).build().map_or(true, |pattern| pattern.is_match(text))
}

fn list<'a>(rules: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    rules.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn object<'a>(rules: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    rules.get(name).and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::check;

    #[test]
    fn every_keyword_that_a_wire_may_drop_is_checked() {
        let table = [
            (json!({"const": "a"}), json!("a"), json!("b")),
            (json!({"allOf": [{"type": "string"}, {"minLength": 2}]}), json!("ab"), json!("a")),
            (json!({"not": {"type": "string"}}), json!(1), json!("a")),
            (
                json!({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 3}}),
                json!("ab"),
                json!(1),
            ),
            (json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3}), json!(2), json!(3)),
            (json!({"multipleOf": 2}), json!(4), json!(3)),
            (json!({"pattern": "^a+$"}), json!("aa"), json!("ab")),
            (
                json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
                json!(["a", 1]),
                json!([1, 1]),
            ),
            (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
            (json!({"contains": {"type": "string"}}), json!([1, "a"]), json!([1])),
            (json!({"minProperties": 1}), json!({"a": 1}), json!({})),
            (json!({"propertyNames": {"pattern": "^a"}}), json!({"ab": 1}), json!({"b": 1})),
            (
                json!({"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}),
                json!({"x1": "a"}),
                json!({"x1": 1}),
            ),
            (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1, "b": 1}), json!({"a": 1})),
        ];
        for (schema, good, bad) in table {
            assert!(check(&schema, &good).is_empty(), "{schema} {good}: {:?}", check(&schema, &good));
            assert!(!check(&schema, &bad).is_empty(), "{schema} {bad}");
        }
        assert!(check(&json!({"pattern": "^(?=a)"}), &json!("b")).is_empty(), "a call is not at fault for a pattern");
    }

    /// Definitions that take more steps than there are.
    fn endless() -> Value {
        let mut definitions = serde_json::Map::new();
        for n in 0..30 {
            let next = format!("#/$defs/d{}", n + 1);
            definitions.insert(format!("d{n}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}));
        }
        definitions.insert("d30".into(), json!({"type": "string"}));
        Value::Object(definitions)
    }

    #[test]
    fn alternatives_of_alternatives_end() {
        let errors = check(&json!({"$defs": endless(), "$ref": "#/$defs/d0"}), &json!(1));
        assert!(!errors.is_empty());
    }

    #[test]
    fn a_check_that_does_not_come_to_its_end_refuses() {
        let endless_one = json!({"$ref": "#/$defs/d0"});
        for schema in [
            json!({"not": endless_one}),
            json!({"if": endless_one, "then": false}),
            json!({"oneOf": [true, endless_one]}),
            json!({"anyOf": [{"not": endless_one}]}),
            json!({"not": {"allOf": [{"not": {"not": endless_one}}]}}),
        ] {
            let mut whole = schema.clone();
            whole["$defs"] = endless();
            let errors = check(&whole, &json!({}));
            assert!(errors.iter().any(|error| error.code == "too_deep"), "{schema}: {errors:?}");
        }
    }

    #[test]
    fn patterns_count_as_work() {
        let many = |kind: &str| -> serde_json::Map<String, Value> {
            (0..200).map(|n| (format!("{kind}{n}"), json!({}))).collect()
        };
        let schema = json!({"patternProperties": many("^x"), "additionalProperties": false});
        let errors = check(&schema, &Value::Object(many("y")));
        assert!(errors.iter().any(|error| error.code == "too_deep"));
        let compared = errors.iter().filter(|error| error.code == "unknown_argument").count();
        assert!(compared < 200, "all names were held against all patterns");
        let nested: Vec<Value> = (0..3_000).map(|n| json!({"pattern": format!("a{n}?")})).collect();
        let errors = check(&json!({"allOf": nested}), &json!("a"));
        assert!(errors.iter().any(|error| error.code == "too_deep"));
    }

    #[test]
    fn items_are_the_same_whatever_the_order_of_their_properties() {
        let schema = json!({"uniqueItems": true});
        assert!(!check(&schema, &json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}])).is_empty());
        assert!(check(&schema, &json!([1, "1", [1], {"1": 1}])).is_empty());
    }

    #[test]
    fn a_choice_without_letters_is_that_choice_only() {
        let schema = json!({"enum": [".", "src"]});
        for (value, fits) in [(".", true), ("SRC", true), ("../..", false), ("", false), ("/", false)] {
            assert_eq!(check(&schema, &json!(value)).is_empty(), fits, "{value}");
        }
    }
}
