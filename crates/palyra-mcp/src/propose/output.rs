//! Who can have written each field of a result, by the names and shapes of the output schema.

use std::cell::Cell;
use std::collections::BTreeMap;

use palyra_common::{Confidentiality, Consequence, FieldClass, FieldRole, Integrity, OutputClass, SinkKind};
use serde_json::Value;

use super::schema::{Shape, shapes};
use super::vocabulary::{
    ASSIGNED_FIELD, AUTHOR_FIELD, AUTHORED_BY, CONTACTS, NAME_FIELD, NUMERIC_ADDRESS, OPEN_WEB, OWN_LISTS, PEOPLE,
    PREPOSITIONS, REACH_FIELD, READING,
};
use super::words::{any_listed, listed, prose, split};
use crate::ToolDescription;

/// How deep results are looked into, and how many fields are named. What lies beyond is text, which is the cautious choice.
const MAX_DEPTH: usize = 8;
const MAX_FIELDS: usize = 200;

/// How many schemas are looked at for one tool; those that refer to each other can be endless.
const MAX_VISITS: usize = 5000;

/// What the rules know about the tool when they look at a field.
struct Setting<'a> {
    root: &'a Value,
    own_list: bool,
    contacts: bool,
    about_people: bool,
    budget: Cell<usize>,
}

/// The class of a tool's results and the reasons for it.
pub(super) fn class(
    tool: &ToolDescription,
    consequence: Consequence,
    sinks: &BTreeMap<String, SinkKind>,
) -> (OutputClass, Vec<String>) {
    let mut why = Vec::new();
    let words = split(&tool.name);
    let open_web = consequence == Consequence::Contained && is_open_web(tool, &words, sinks);
    let confidentiality = if open_web {
        why.push("results: public, because they come from the open web, where anyone may have written them".to_owned());
        Confidentiality::Public
    } else {
        why.push("results: private, and untrusted except for the fields listed".to_owned());
        Confidentiality::Private
    };
    let mut fields = Vec::new();
    match &tool.output_schema {
        // On the open web nobody but the author of a page has assigned anything.
        Some(schema) if !open_web => {
            let setting = Setting {
                root: schema,
                own_list: is_own_list(&words),
                contacts: any_listed(&words, CONTACTS) || words.windows(2).any(|pair| pair == ["address", "book"]),
                about_people: any_listed(&words, PEOPLE) || any_listed(&words, &["presence", "profile"]),
                budget: Cell::new(MAX_VISITS),
            };
            walk(schema, &mut Vec::new(), &setting, &mut fields);
        }
        Some(_) => {}
        None => why.push("results: the server declares no output schema, so everything is treated as text".to_owned()),
    }
    why.extend(fields.iter().map(|field: &FieldClass| {
        let meaning = match field.role {
            FieldRole::Assigned => "it is assigned by the server",
            FieldRole::Identifier => "it is a name from the user's own list",
            FieldRole::Author => "it names the record's author",
            FieldRole::Text => "anyone may have written it",
        };
        format!("field {}: {}, {meaning}", field.field, field.role)
    }));
    (OutputClass { integrity: Integrity::Untrusted, confidentiality, fields, named: Vec::new() }, why)
}

/// Whether the tool fetches what everybody can fetch: its name says so, or it is pointed at an address and says so.
fn is_open_web(tool: &ToolDescription, words: &[String], sinks: &BTreeMap<String, SinkKind>) -> bool {
    // Only network arguments are destinations of a tool that reads.
    let pointed = sinks.values().any(|kind| *kind == SinkKind::Destination);
    if any_listed(words, OPEN_WEB) || (pointed && any_listed(words, &["url", "page"])) {
        return true;
    }
    let description = prose(tool.description.as_deref().unwrap_or_default());
    let own = any_listed(&description, &["account", "inbox", "my", "own", "private", "your"])
        || any_listed(words, &["account", "inbox", "mail", "my"]);
    !own && (any_listed(&description, &["internet", "wikipedia"]) || (pointed && any_listed(&description, OPEN_WEB)))
}

/// Whether the object of the verb is a list of the user's own things: `get_users_in_channel`, but not `get_channel_messages`.
fn is_own_list(words: &[String]) -> bool {
    let Some(verb) = words.iter().position(|word| READING.contains(&word.as_str())) else {
        return false;
    };
    let object = words.iter().skip(verb + 1).take_while(|word| !PREPOSITIONS.contains(&word.as_str())).last();
    // With the verb last, as in `channels_list`, the object stands before it.
    let object = object.or_else(|| verb.checked_sub(1).and_then(|before| words.get(before)));
    object.is_some_and(|object| OWN_LISTS.contains(&object.as_str()))
}

fn walk(schema: &Value, path: &mut Vec<String>, setting: &Setting<'_>, fields: &mut Vec<FieldClass>) {
    let budget = setting.budget.get();
    if path.len() > MAX_DEPTH || fields.len() >= MAX_FIELDS || budget == 0 {
        return;
    }
    setting.budget.set(budget - 1);
    let shapes = shapes(schema, setting.root);
    // Where a field may be several things, it has a role only if each of them gives it the same one.
    let mut roles = shapes.iter().filter_map(|shape| match shape {
        Shape::List(_) | Shape::Record(_) | Shape::Dictionary(_) => None,
        // Nothing at all is no text of anybody's.
        Shape::Boolean if shapes.len() > 1 => None,
        scalar => Some(role(path, *scalar, setting)),
    });
    let first = roles.next().flatten();
    if let Some(role) = first.filter(|first| roles.all(|role| role == Some(*first))) {
        let field = if path.is_empty() { ".".to_owned() } else { path.join(".") };
        let class = FieldClass { field, role };
        if !fields.contains(&class) {
            fields.push(class);
        }
    }
    for shape in shapes {
        match shape {
            Shape::List(inner) | Shape::Dictionary(inner) => step("*", inner, path, setting, fields),
            Shape::Record(named) => {
                let mut named: Vec<_> = named.iter().collect();
                named.sort_by_key(|(name, _)| *name);
                for (name, inner) in named {
                    // Such a name cannot be written as a pattern; its value stays text.
                    if !name.is_empty() && !name.contains('.') && name != "*" {
                        step(name, inner, path, setting, fields);
                    }
                }
            }
            _ => {}
        }
    }
}

fn step(name: &str, schema: &Value, path: &mut Vec<String>, setting: &Setting<'_>, fields: &mut Vec<FieldClass>) {
    path.push(name.to_owned());
    walk(schema, path, setting, fields);
    path.pop();
}

fn role(path: &[String], shape: Shape<'_>, setting: &Setting<'_>) -> Option<FieldRole> {
    let name = path.iter().rev().find(|step| *step != "*").map(String::as_str).unwrap_or_default();
    let words = split(name);
    let last = words.last().map(String::as_str).unwrap_or_default();
    match shape {
        Shape::Boolean => Some(FieldRole::Assigned),
        // The number of an account or a telephone is an address, and anyone may have written it.
        Shape::Number => (!any_listed(&words, NUMERIC_ADDRESS)).then_some(FieldRole::Assigned),
        Shape::Closed | Shape::Text(Some("date" | "date-time" | "time" | "duration" | "uuid")) => {
            Some(FieldRole::Assigned)
        }
        Shape::Text(_) => {
            let in_list = path.last().is_some_and(|step| step == "*");
            let is_item = in_list && (name.is_empty() || name == "result" || listed_thing(&words));
            if setting.contacts && listed(last, REACH_FIELD) {
                return Some(FieldRole::Identifier);
            }
            if setting.own_list && (is_item || (!in_list && listed(last, NAME_FIELD))) {
                return Some(FieldRole::Identifier);
            }
            let by = matches!(words.as_slice(), [.., verb, by] if by == "by" && AUTHORED_BY.contains(&verb.as_str()));
            // Several of them are a list of people, of whom nobody knows which one wrote the record.
            if !in_list && (by || (words.len() == 1 && AUTHOR_FIELD.contains(&last))) {
                return Some(FieldRole::Author);
            }
            is_assigned(&words, setting).then_some(FieldRole::Assigned)
        }
        _ => None,
    }
}

/// Whether a field of this name holds the list itself: `channels`, `items`, `names`.
fn listed_thing(words: &[String]) -> bool {
    words.last().is_some_and(|last| {
        OWN_LISTS.contains(&last.as_str()) || ["items", "names", "results"].contains(&last.as_str())
    })
}

fn is_assigned(words: &[String], setting: &Setting<'_>) -> bool {
    match words {
        // People write their own status.
        [.., status] if status == "status" && setting.about_people => false,
        [.., event, at] if at == "at" || at == "on" => {
            ["created", "updated", "modified", "sent", "received"].contains(&event.as_str())
        }
        [.., last] => ASSIGNED_FIELD.contains(&last.as_str()),
        [] => false,
    }
}
