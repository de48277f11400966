//! Answers that the provider itself holds to their schema.
//!
//! Only part of JSON Schema can be strict: closed objects with named properties, everything typed. Here, unlike for tools, a schema whose
//! meaning would change is not sent in this form at all; whoever asked checks the answer in either case.

use serde_json::Value;

use super::dialect::SchemaDialect;
use super::node::{Additional, Node, Types};
use super::{read, write};

/// The schema in OpenAI's strict form: an object, every object in it closed, every property required. None if it is not like that.
pub(crate) fn openai_answer(schema: &Value) -> Option<Value> {
    let (node, losses) = read::read(schema);
    let strict = losses.is_empty() && node.types == Types::OBJECT && is_strict(&node, Form::OpenAi);
    strict.then(|| write::write(&node, SchemaDialect::OpenAiStrict, &mut Vec::new()))
}

/// The schema in Anthropic's strict form, where objects are closed and bounds are not known. None if it would mean something else.
pub(crate) fn anthropic_answer(schema: &Value) -> Option<Value> {
    let (mut node, losses) = read::read(schema);
    // That only one alternative fits does not matter to who writes the answer.
    if losses.iter().any(|lost| lost.keyword != "oneOf") || !is_strict(&node, Form::Anthropic) {
        return None;
    }
    close(&mut node);
    Some(write::write(&node, SchemaDialect::AnthropicStrict, &mut Vec::new()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OpenAi,
    Anthropic,
}

fn is_strict(node: &Node, form: Form) -> bool {
    let typed = node.types != Types::ALL || node.choices.is_some() || !node.any_of.is_empty();
    let alone = node.any_of.is_empty() || (node.types == Types::ALL && node.asserts_only_types());
    let is_object = node.types != Types::ALL && node.types.has(Types::OBJECT) && node.choices.is_none();
    let closed = match (&node.additional, form) {
        (Additional::Closed, _) | (Additional::Unsaid, Form::Anthropic) => true,
        (Additional::Unsaid, Form::OpenAi) | (Additional::Open | Additional::Schema(_), _) => false,
    };
    let all_required = form == Form::Anthropic || node.properties.keys().all(|name| node.required.contains(name));
    let named = form == Form::OpenAi || !node.properties.is_empty();
    typed
        && alone
        && node.prefix.is_empty()
        && (!is_object || (closed && all_required && named))
        && node.properties.values().chain(node.items.as_deref()).chain(&node.any_of).all(|inner| is_strict(inner, form))
}

/// Says of every object that it holds nothing else.
fn close(node: &mut Node) {
    if node.types.has(Types::OBJECT) && !node.properties.is_empty() {
        node.additional = Additional::Closed;
    }
    for inner in node.properties.values_mut().chain(node.items.as_deref_mut()).chain(&mut node.any_of) {
        close(inner);
    }
}
