//! One text for one JSON value: object keys sorted, no white space. Bindings and loop detection hash this.

use serde_json::Value;

/// The canonical text of a JSON value.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
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
    fn key_order_does_not_matter_but_values_do() {
        let one: Value = serde_json::from_str(r#"{"b":[1,{"y":null,"x":"ä"}],"a":true}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":true,"b":[1,{"x":"ä","y":null}]}"#).unwrap();
        assert_eq!(canonical_json(&one), canonical_json(&two));
        assert_eq!(canonical_json(&one), r#"{"a":true,"b":[1,{"x":"ä","y":null}]}"#);
    }
}
