//! How the results and arguments of one tool are treated by the information-flow rule.
//!
//! Built-in tools state this in code. Tools of an outside server get [`ToolClassification::cautious`] until the operator has reviewed
//! that server's classification file, which is a table of these by tool name. A classification is data; `palyra-flow` applies it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Confidentiality, Integrity, Label, SinkKind, runtime_contract_enum};

runtime_contract_enum! {
    /// Whether an effect matters outside the run.
    pub enum Consequence("consequence") {
        /// It can be undone or stays inside.
        Contained = "contained",
        /// It changes something that others see.
        Consequential = "consequential",
    }
}

runtime_contract_enum! {
    /// Who can have written a field of a result.
    pub enum FieldRole("field_role") {
        /// The user's own store assigned it: numbers, dates, flags, record ids. Nobody else can choose it.
        Assigned = "assigned",
        /// A name out of a closed list of the user's own store. Trusted only where the value is a plain identifier; free text in its
        /// place is untrusted.
        Identifier = "identifier",
        /// The identity that the store attests for whoever wrote the record. Anyone may be it, so it is not trusted as a destination;
        /// but it says who wrote the rest.
        Author = "author",
        /// Free text that anyone may have written. The default.
        Text = "text",
    }
}

/// The role of the fields that a pattern names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldClass {
    /// Where the field stands in the structured result: names and `*` (any name or position) separated by dots, such as `*.id`.
    /// `.` alone is the result itself.
    pub field: String,
    /// Who can have written it.
    pub role: FieldRole,
}

/// What label a tool's results get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputClass {
    /// Integrity of everything that no field says more about.
    pub integrity: Integrity,
    /// Confidentiality of the whole.
    pub confidentiality: Confidentiality,
    /// Fields with a role of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldClass>,
    /// Further fields whose names are no secret and nobody's message: those that the tool's pinned output schema lists, written as in `fields`. Their values are
    /// text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
}

impl OutputClass {
    /// A result without fields of their own.
    #[must_use]
    pub const fn whole(label: &Label) -> Self {
        Self {
            integrity: label.integrity,
            confidentiality: label.confidentiality,
            fields: Vec::new(),
            named: Vec::new(),
        }
    }
}

/// How one tool is treated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolClassification {
    /// Whether its effect matters outside the run.
    pub consequence: Consequence,
    /// What label its results get.
    pub output: OutputClass,
    /// What the arguments decide, by name. An argument that is not listed decides nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sinks: BTreeMap<String, SinkKind>,
    /// Whether the same call may be made again after a crash.
    #[serde(default)]
    pub repeatable: bool,
}

impl ToolClassification {
    /// What holds for a tool that nobody has reviewed: consequential, not repeatable, untrusted private results, every argument a
    /// destination.
    #[must_use]
    pub fn cautious(arguments: impl IntoIterator<Item = String>) -> Self {
        Self {
            consequence: Consequence::Consequential,
            output: OutputClass {
                integrity: Integrity::Untrusted,
                confidentiality: Confidentiality::Private,
                fields: Vec::new(),
                named: Vec::new(),
            },
            sinks: arguments.into_iter().map(|name| (name, SinkKind::Destination)).collect(),
            repeatable: false,
        }
    }
}

/// How deep schemas are looked into, how many of their parts, and how many fields are named. What lies beyond has no name that is shown.
const MAX_DEPTH: usize = 8;
const MAX_VISITS: usize = 5_000;
const MAX_NAMED: usize = 200;

/// The fields that a schema of results lists, as patterns like those of [`FieldClass`].
#[must_use]
pub fn named_fields(schema: &Value) -> Vec<String> {
    let mut walk = Walk { root: schema, path: Vec::new(), visits: 0, named: Vec::new() };
    walk.schema(schema, 0);
    walk.named
}

struct Walk<'a> {
    root: &'a Value,
    path: Vec<&'a str>,
    visits: usize,
    named: Vec<String>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) {
        self.visits += 1;
        if depth > 2 * MAX_DEPTH || self.path.len() > MAX_DEPTH || self.visits > MAX_VISITS {
            return;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer))
        {
            self.schema(target, depth + 1);
        }
        for alternative in ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten() {
            self.schema(alternative, depth + 1);
        }
        for (key, under) in [("items", "*"), ("additionalProperties", "*")] {
            if let Some(inner) = schema.get(key).filter(|inner| inner.is_object()) {
                self.step(under, inner, depth);
            }
        }
        for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // Such a name cannot be written as a pattern.
            if name.is_empty() || name.contains('.') || name == "*" || self.named.len() >= MAX_NAMED {
                continue;
            }
            self.path.push(name);
            let pattern = self.path.join(".");
            self.path.pop();
            if !self.named.contains(&pattern) {
                self.named.push(pattern);
            }
            self.step(name, inner, depth);
        }
    }

    fn step(&mut self, name: &'a str, schema: &'a Value, depth: usize) {
        self.path.push(name);
        self.schema(schema, depth + 1);
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_names_of_a_schema_are_patterns() {
        let schema = json!({
            "properties": {
                "items": { "type": "array", "items": { "$ref": "#/$defs/item" } },
                "by_name": { "additionalProperties": { "properties": { "id": {} } } },
                "a.b": {},
            },
            "$defs": { "item": { "anyOf": [{ "properties": { "id": {}, "parent": { "$ref": "#/$defs/item" } } }, { "type": "null" }] } },
        });
        let named = named_fields(&schema);
        for pattern in ["items", "items.*.id", "items.*.parent.id", "by_name", "by_name.*.id"] {
            assert!(named.contains(&pattern.to_owned()), "{pattern}: {named:?}");
        }
        assert!(!named.iter().any(|pattern| pattern.contains("a.b")), "{named:?}");
        assert!(named.len() <= MAX_NAMED, "a schema that refers to itself ends");
    }
}
