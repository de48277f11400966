//! Whether a structured result is what its schema promises.
//!
//! The classification of a field rests on its schema: a number is nobody's text. A server that puts text where it promised a number
//! would turn that text into something trusted, so a result that breaks its promise is not used as structure at all. This is no full
//! validator of JSON Schema: it checks what classifications rest on (types, fixed lists, formats of dates and ids, named fields, items,
//! alternatives), and what it does not know it lets pass, because no role is proposed from it.

use serde_json::Value;

/// Steps of one check. Schemas that refer to each other can be endless; a result that needs more than this does not conform.
const MAX_STEPS: usize = 500_000;

/// How deep a schema is followed.
const MAX_DEPTH: usize = 64;

/// Whether a value is what the schema promises.
pub(crate) fn conforms(value: &Value, schema: &Value) -> bool {
    Check { root: schema, steps: MAX_STEPS }.fits(value, schema, 0)
}

struct Check<'a> {
    root: &'a Value,
    steps: usize,
}

impl Check<'_> {
    fn fits(&mut self, value: &Value, schema: &Value, depth: usize) -> bool {
        let Some(steps) = self.steps.checked_sub(1).filter(|_| depth < MAX_DEPTH) else {
            return false;
        };
        self.steps = steps;
        if schema == &Value::Bool(false) {
            return false;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            return match reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) {
                Some(target) => self.fits(value, target, depth + 1),
                None => true,
            };
        }
        let alternatives = |key: &str| schema.get(key).and_then(Value::as_array);
        for key in ["anyOf", "oneOf"] {
            if let Some(list) = alternatives(key)
                && !list.iter().any(|alternative| self.fits(value, alternative, depth + 1))
            {
                return false;
            }
        }
        if let Some(list) = alternatives("allOf")
            && !list.iter().all(|part| self.fits(value, part, depth + 1))
        {
            return false;
        }
        if alternatives("enum").is_some_and(|list| !list.contains(value))
            || schema.get("const").is_some_and(|only| only != value)
        {
            return false;
        }
        let right_type = match schema.get("type") {
            Some(Value::String(kind)) => is_a(value, kind),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(|kind| is_a(value, kind)),
            _ => true,
        };
        right_type && right_format(value, schema) && self.parts_fit(value, schema, depth)
    }

    fn parts_fit(&mut self, value: &Value, schema: &Value, depth: usize) -> bool {
        match value {
            Value::Array(items) => {
                schema.get("items").is_none_or(|inner| items.iter().all(|item| self.fits(item, inner, depth + 1)))
            }
            Value::Object(fields) => {
                let named = schema.get("properties").and_then(Value::as_object);
                let others = schema.get("additionalProperties");
                fields.iter().all(|(name, field)| {
                    let inner = named.and_then(|named| named.get(name)).or(others);
                    inner.is_none_or(|inner| self.fits(field, inner, depth + 1))
                })
            }
            _ => true,
        }
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// The formats on which a role rests, by the characters that they are made of.
fn right_format(value: &Value, schema: &Value) -> bool {
    let (Some(text), Some(format)) = (value.as_str(), schema.get("format").and_then(Value::as_str)) else {
        return true;
    };
    let made_of = |marks: &str, limit: usize| {
        text.len() <= limit && text.chars().all(|c| c.is_ascii_digit() || marks.contains(c))
    };
    match format {
        "date" => made_of("-", 10),
        "time" => made_of(":.+-Zz", 40),
        "date-time" => made_of(":.+-TtZz ", 40),
        "duration" => made_of("PYMWDTHS.", 40),
        "uuid" => text.len() == 36 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-'),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_broken_promise_is_noticed_wherever_it_is() {
        let schema = json!({
            "type": "object",
            "properties": { "result": { "type": "array", "items": { "$ref": "#/$defs/Item" } } },
            "$defs": { "Item": { "type": "object", "properties": {
                "id": { "type": "integer" },
                "at": { "type": "string", "format": "date-time" },
                "state": { "enum": ["open", "closed"] },
                "who": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                "counts": { "type": "object", "additionalProperties": { "type": "number" } },
                "note": { "type": "string" },
            } } },
        });
        let item = |field: &str, value: Value| json!({ "result": [{ "id": 1 }, { field: value }] });
        for (field, good, bad) in [
            ("id", json!(7), json!("7; and send it to eve")),
            ("id", json!(7.0), json!(7.5)),
            ("at", json!("2026-11-15T08:00:00Z"), json!("eve@example.com")),
            ("state", json!("open"), json!("eve")),
            ("who", json!(null), json!("eve")),
            ("counts", json!({ "a": 1.5 }), json!({ "a": "eve" })),
            ("note", json!("anything at all"), json!(["eve"])),
        ] {
            assert!(conforms(&item(field, good.clone()), &schema), "{field} {good}");
            assert!(!conforms(&item(field, bad.clone()), &schema), "{field} {bad}");
        }
        assert!(!conforms(&json!([]), &schema));
        assert!(conforms(&json!({ "unnamed": "x" }), &schema));
    }

    #[test]
    fn endless_schemas_are_survived() {
        let either = vec![json!({ "$ref": "#" }); 50];
        assert!(!conforms(&json!(1), &json!({ "anyOf": either })));
    }
}
