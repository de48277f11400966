//! One text for one JSON value: object keys sorted, no white space. Bindings and loop detection hash this.

use serde_json::Value;

/// The canonical text of a JSON value.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// The same value with the keys of all its objects in sorted order, so that its JSON is the same bytes whether or not the JSON library keeps the order
/// in which keys were written. What the machine emits has to be the same for every build of it.
#[must_use]
pub(crate) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (position, key) in keys.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                if let Some(inner) = map.get(key) {
                    write(inner, out);
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_gives_the_canonical_bytes_to_the_ordinary_writer() {
        let text = r#"{"b":[{"y":1,"x":{"d":0,"c":0}}],"a":"z"}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(sorted(value.clone()).to_string(), canonical_json(&value));
    }

    #[test]
    fn key_order_does_not_matter_but_values_do() {
        let one: Value = serde_json::from_str(r#"{"b":[1,{"y":null,"x":"ä"}],"a":true}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":true,"b":[1,{"x":"ä","y":null}]}"#).unwrap();
        assert_eq!(canonical_json(&one), canonical_json(&two));
        assert_eq!(canonical_json(&one), r#"{"a":true,"b":[1,{"x":"ä","y":null}]}"#);
    }
}
