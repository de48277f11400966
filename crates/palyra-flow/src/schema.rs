//! What the schema of a tool's arguments says about one of them.

use serde_json::Value;

/// Whether a schema names a property so, at any depth.
pub(crate) fn names_property(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(members) => {
            let listed = members.get("properties").and_then(Value::as_object);
            listed.is_some_and(|properties| properties.contains_key(name))
                || members.values().any(|member| names_property(member, name))
        }
        Value::Array(items) => items.iter().any(|item| names_property(item, name)),
        _ => false,
    }
}

/// Flags and values out of the schema's own list are nobody's text.
pub(crate) fn is_chosen_from_a_list(schema: &Value, name: &str, value: &Value) -> bool {
    if value.is_boolean() {
        return true;
    }
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    let listed = property.and_then(|property| property.get("enum")).and_then(Value::as_array);
    listed.is_some_and(|values| values.contains(value))
}

/// Whether a schema says that leaving an argument out means this value.
pub(crate) fn is_default(schema: &Value, name: &str, value: &Value) -> bool {
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    property.and_then(|property| property.get("default")).is_some_and(|default| default == value)
}
