//! JSON Schemas without references.
//!
//! Vendors take subsets of JSON Schema and most of them stumble over `$ref`. Here references to definitions in the same document are put
//! in their places. What keywords a vendor takes is the vendor's business.

use serde_json::{Map, Value};

/// Deepest nesting that is followed; a schema that refers to itself goes beyond any depth.
const MAX_DEPTH: usize = 32;
/// Most elements of the outcome. Definitions that use each other twice grow without measure.
const MAX_ELEMENTS: usize = 20_000;

/// The schema with every reference replaced by what it names; none if it refers to itself, to another document or to
/// nothing.
pub(crate) fn inlined(schema: &Value) -> Option<Value> {
    let mut left = MAX_ELEMENTS;
    inline(schema, schema, 0, &mut left)
}

fn inline(schema: &Value, root: &Value, depth: usize, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    if depth > MAX_DEPTH {
        return None;
    }
    match schema {
        Value::Object(fields) => {
            let mut whole = Map::new();
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let target = root.pointer(reference.strip_prefix('#')?)?;
                if let Value::Object(named) = inline(target, root, depth + 1, left)? {
                    whole = named;
                }
            }
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("$ref" | "$defs" | "definitions" | "$schema" | "$id", _) => {}
                    // The names in here are the document's own, whatever they look like.
                    ("properties" | "patternProperties", Value::Object(properties)) => {
                        let inlined = properties
                            .iter()
                            .map(|(name, value)| Some((name.clone(), inline(value, root, depth + 1, left)?)))
                            .collect::<Option<Map<_, _>>>()?;
                        whole.insert(name.clone(), Value::Object(inlined));
                    }
                    // What stands beside a reference narrows it, most often by a description.
                    _ => {
                        whole.insert(name.clone(), inline(value, root, depth + 1, left)?);
                    }
                }
            }
            Some(Value::Object(whole))
        }
        Value::Array(items) => {
            items.iter().map(|item| inline(item, root, depth + 1, left)).collect::<Option<Vec<_>>>().map(Value::Array)
        }
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_put_in_place() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"p": {"type": "string", "description": "old"}, "q": {"$ref": "#/$defs/p"}},
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/q", "description": "new"}, "b": {"items": [{"$ref": "#/$defs/p"}]}, "definitions": {"type": "null"}},
        });
        assert_eq!(
            inlined(&schema).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "string", "description": "new"},
                    "b": {"items": [{"type": "string", "description": "old"}]},
                    "definitions": {"type": "null"},
                },
            })
        );
    }

    #[test]
    fn endless_and_dangling_references_are_refused() {
        assert!(inlined(&json!({"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"})).is_none());
        assert!(inlined(&json!({"$ref": "#/$defs/none"})).is_none());
        assert!(inlined(&json!({"$ref": "https://example.org/schema"})).is_none());
        // Each definition holds the next one twice: small to write, 2^40 to spell out.
        let mut definitions = Map::new();
        for n in 0..40 {
            let next = format!("#/$defs/d{}", n + 1);
            definitions.insert(format!("d{n}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}));
        }
        definitions.insert("d40".into(), json!({"type": "string"}));
        assert!(inlined(&json!({"$defs": definitions, "$ref": "#/$defs/d0"})).is_none());
    }
}
