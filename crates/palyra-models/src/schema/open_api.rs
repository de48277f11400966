//! The subset of OpenAPI's schemas that older Gemini models take: one type for each schema, `nullable` beside it, enumerations of
//! strings, nothing untyped.
//!
//! What has no type at all cannot be said exactly. It is said as a choice of all types, where a list holds scalars and objects.

use serde_json::{Map, Value, json};

use super::dialect::SchemaDialect;
use super::loss::Dropped;
use super::node::{Node, Types};
use super::write::Writer;

/// The schema in the subset.
pub(super) fn write(node: &Node, losses: &mut Vec<Dropped>) -> Value {
    let mut writer = Writer { accepts: SchemaDialect::GeminiOpenApi.accepts(), losses };
    writer.subset(node)
}

impl Writer<'_> {
    fn subset(&mut self, node: &Node) -> Value {
        let mut fields = Map::new();
        if let Some(description) = &node.description {
            fields.insert("description".to_owned(), description.as_str().into());
        }
        if let Some(default) = &node.default {
            fields.insert("default".to_owned(), default.clone());
        }
        if node.accepts_nothing() {
            self.lose(node, "false");
            self.any_type(node, &mut fields);
            return Value::Object(fields);
        }
        if !node.any_of.is_empty() {
            if node.choices.is_none() && !node.has_structure() {
                self.any_of(node, &mut fields);
                return Value::Object(fields);
            }
            self.lose(node, "anyOf");
        }
        let choices = self.choices(node);
        // The types that the choices are of, where only choices are accepted.
        let types = match &choices {
            Some(choices) => choices.iter().fold(Types::NONE, |types, one| types.or(Types::of(one))),
            None => node.types,
        };
        let types = match types {
            Types::ALL if !node.properties.is_empty() => Types::OBJECT,
            Types::ALL if node.items.is_some() || !node.prefix.is_empty() => Types::ARRAY,
            types => types,
        };
        if types != node.types && node.types == Types::ALL && choices.is_none() {
            self.lose(node, "type");
        }
        if types.has(Types::NULL) && types != Types::NULL {
            fields.insert("nullable".to_owned(), true.into());
        }
        match types.without(if types == Types::NULL { Types::NONE } else { Types::NULL }).names().as_slice() {
            [only] => self.single(node, only, choices, &mut fields),
            _ if types == Types::ALL => self.any_type(node, &mut fields),
            several => {
                let several: Vec<&str> = several.to_vec();
                let mut branches = Vec::new();
                for kind in several {
                    let mut branch = Map::new();
                    let of_kind = Types::named(kind).unwrap_or(Types::NONE);
                    let fitting = choices
                        .as_ref()
                        .map(|all| all.iter().filter(|one| of_kind.has(Types::of(one))).cloned().collect());
                    self.single(node, kind, fitting, &mut branch);
                    branches.push(Value::Object(branch));
                }
                fields.insert("anyOf".to_owned(), branches.into());
            }
        }
        Value::Object(fields)
    }

    fn any_of(&mut self, node: &Node, fields: &mut Map<String, Value>) {
        let base = Node { description: None, default: None, any_of: Vec::new(), ..node.clone() };
        let each: Vec<Node> = node.any_of.iter().map(|branch| branch.clone().both(base.clone(), self.losses)).collect();
        let is_null = |branch: &&Node| branch.types == Types::NULL;
        if each.iter().any(|branch| is_null(&branch)) {
            fields.insert("nullable".to_owned(), true.into());
        }
        let real: Vec<&Node> = each.iter().filter(|branch| !is_null(branch)).collect();
        match real.as_slice() {
            [only] => {
                let Value::Object(only) = self.subset(only) else { return };
                for (name, value) in only {
                    fields.entry(name).or_insert(value);
                }
            }
            several => {
                let branches: Vec<Value> = several.iter().map(|branch| self.subset(branch)).collect();
                fields.insert("anyOf".to_owned(), branches.into());
            }
        }
    }

    /// Assertions of one type.
    fn single(&mut self, node: &Node, kind: &str, choices: Option<Vec<Value>>, fields: &mut Map<String, Value>) {
        fields.insert("type".to_owned(), kind.into());
        if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
            if kind == "string" {
                fields.insert("enum".to_owned(), choices.into());
            } else {
                // Enumerations of anything but strings are refused; said in words they are not lost.
                self.lose(node, "enum");
                let said = fields.get("description").and_then(Value::as_str).unwrap_or_default();
                let words = format!("{said} One of {}.", Value::Array(choices)).trim_start().to_owned();
                fields.insert("description".to_owned(), words.into());
            }
        }
        let bounds = &node.bounds;
        match kind {
            "string" => {
                let own = super::node::Bounds {
                    min_length: bounds.min_length,
                    max_length: bounds.max_length,
                    pattern: bounds.pattern.clone(),
                    format: bounds.format.clone(),
                    ..Default::default()
                };
                self.scalars(&Node { bounds: own, ..node.clone() }, fields);
            }
            "integer" | "number" => {
                let own = super::node::Bounds {
                    min_length: None,
                    max_length: None,
                    pattern: None,
                    min_items: None,
                    max_items: None,
                    unique_items: None,
                    ..bounds.clone()
                };
                self.scalars(&Node { bounds: own, ..node.clone() }, fields);
            }
            "array" => {
                let items = self.any_item(node).map_or_else(
                    || {
                        let mut any = Map::new();
                        any.insert("anyOf".to_owned(), scalars_and_objects());
                        Value::Object(any)
                    },
                    |items| self.subset(&items),
                );
                fields.insert("items".to_owned(), items);
                use super::dialect::Keyword;
                let (least, most) = self.counts(
                    node,
                    (bounds.min_items, "minItems", Keyword::MinItems),
                    (bounds.max_items, "maxItems", Keyword::MaxItems),
                );
                fields.extend(least.map(|least| ("minItems".to_owned(), least.into())));
                fields.extend(most.map(|most| ("maxItems".to_owned(), most.into())));
                if bounds.unique_items.is_some() {
                    self.lose(node, "uniqueItems");
                }
            }
            "object" => {
                let mut properties = Map::new();
                for (name, property) in &node.properties {
                    if property.accepts_nothing() {
                        self.lose(property, "false");
                        continue;
                    }
                    properties.insert(name.clone(), self.subset(property));
                }
                let required = self.required(node, &properties);
                if !required.is_empty() {
                    fields.insert("required".to_owned(), required.into());
                }
                if !properties.is_empty() {
                    fields.insert("properties".to_owned(), Value::Object(properties));
                }
                if !matches!(node.additional, super::node::Additional::Unsaid | super::node::Additional::Open) {
                    self.lose(node, "additionalProperties");
                }
            }
            _ => {}
        }
    }

    fn any_type(&mut self, node: &Node, fields: &mut Map<String, Value>) {
        if !node.asserts_only_types() {
            self.lose(node, "type");
        }
        let Value::Array(mut all) = scalars_and_objects() else { return };
        all.push(json!({ "type": "array", "items": { "anyOf": scalars_and_objects() } }));
        fields.insert("nullable".to_owned(), true.into());
        fields.insert("anyOf".to_owned(), all.into());
    }
}

fn scalars_and_objects() -> Value {
    json!([{ "type": "string" }, { "type": "number" }, { "type": "boolean" }, { "type": "object" }])
}
