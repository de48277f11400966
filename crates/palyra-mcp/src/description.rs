//! What a server says about one tool, and the digest by which that is pinned.

use palyra_common::Digest;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What a server says about one tool. All of it is untrusted data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDescription {
    /// The server's own name for the tool.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What the tool does, in the server's words.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// The server's claims about the tool's behaviour, as sent.
    pub annotations: Option<Value>,
}

/// The claims of a server that this crate looks at; absent ones claim nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolHints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
}

impl ToolDescription {
    /// The digest of everything that the operator agreed to.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let whole = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": self.annotations,
        });
        Digest::of(canonical(&whole).as_bytes())
    }

    /// The names of the arguments that the schema names.
    pub fn argument_names(&self) -> impl Iterator<Item = &str> {
        self.properties().into_iter().flat_map(|map| map.keys().map(String::as_str))
    }

    pub(crate) fn properties(&self) -> Option<&Map<String, Value>> {
        self.input_schema.get("properties").and_then(Value::as_object)
    }

    /// The server's claims about the tool's behaviour.
    #[must_use]
    pub fn hints(&self) -> ToolHints {
        let hint = |name: &str| self.annotations.as_ref()?.get(name)?.as_bool();
        ToolHints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
        }
    }

    pub(crate) fn from_protocol(tool: rmcp::model::Tool) -> Self {
        Self {
            name: tool.name.into_owned(),
            title: tool.title,
            description: tool.description.map(std::borrow::Cow::into_owned),
            input_schema: Value::Object((*tool.input_schema).clone()),
            output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
            annotations: tool.annotations.and_then(|annotations| serde_json::to_value(annotations).ok()),
        }
    }
}

/// One text for one value: keys sorted, no white space, whatever order the JSON library keeps.
fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (position, (key, inner)) in entries.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write(inner, out);
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

    fn tool() -> ToolDescription {
        ToolDescription {
            name: "send".to_owned(),
            title: None,
            description: Some("Sends.".to_owned()),
            input_schema: json!({ "type": "object", "properties": { "to": { "type": "string" } } }),
            output_schema: None,
            annotations: None,
        }
    }

    #[test]
    fn every_part_counts_for_the_digest() {
        let original = tool().digest();
        let changes: [fn(&mut ToolDescription); 6] = [
            |tool| tool.name = "post".to_owned(),
            |tool| tool.title = Some("Send".to_owned()),
            |tool| tool.description = Some("Sends!".to_owned()),
            |tool| tool.input_schema["properties"]["cc"] = json!({}),
            |tool| tool.output_schema = Some(json!({})),
            |tool| tool.annotations = Some(json!({ "readOnlyHint": true })),
        ];
        for change in changes {
            let mut changed = tool();
            change(&mut changed);
            assert_ne!(changed.digest(), original, "{changed:?}");
        }
    }

    #[test]
    fn the_order_of_keys_does_not_count() {
        let mut left = tool();
        let mut right = tool();
        left.input_schema = serde_json::from_str(r#"{"a":{"x":1,"y":[2]},"b":null}"#).unwrap();
        right.input_schema = serde_json::from_str(r#"{"b":null,"a":{"y":[2],"x":1}}"#).unwrap();
        assert_eq!(left.digest(), right.digest());
        right.input_schema = serde_json::from_str(r#"{"b":null,"a":{"y":[3],"x":1}}"#).unwrap();
        assert_ne!(left.digest(), right.digest());
    }
}
