//! What each argument decides, by the words of its name and the shape of its schema.

use std::cell::Cell;

use palyra_common::{Consequence, SinkKind};
use serde_json::Value;

use super::schema::{Shape, shapes};
use super::vocabulary::{
    ADDRESSED_BY_ID, AMOUNT, CATALOGUE_CODE, CODE_TO, COMMAND, CONTENT, CREATING, CREDENTIAL, DESTINATION, DESTROYING,
    EXECUTES_QUERIES, EXPRESSION, HARMLESS_TOKEN, KEY_TO, MONEY_LIMIT, NETWORK, NUMERIC_ADDRESS, PATH, PEOPLE, QUERY,
    SETTING,
};
use super::words::{any_listed, listed, prose, split};
use crate::ToolDescription;

/// How deep objects inside arguments are looked into.
const MAX_DEPTH: usize = 6;

/// How many schemas are looked at for one tool. Those that refer to each other can be endless; what is left over counts as unknown.
const MAX_VISITS: usize = 2000;

/// What an argument decides, and why that is thought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) kind: SinkKind,
    pub(super) why: String,
}

/// What the rules know about the tool when they look at an argument.
pub(super) struct Setting<'a> {
    root: &'a Value,
    acts: bool,
    destroys: bool,
    creates: bool,
    about_people: bool,
    executes_queries: bool,
    budget: Cell<usize>,
}

impl<'a> Setting<'a> {
    pub(super) fn new(tool: &'a ToolDescription, consequence: Consequence) -> Self {
        let name = split(&tool.name);
        let description = tool.description.as_deref().map(prose).unwrap_or_default();
        let verb = |list: &[&str]| name.iter().any(|word| list.contains(&word.as_str()));
        Self {
            root: &tool.input_schema,
            acts: consequence == Consequence::Consequential,
            destroys: verb(DESTROYING),
            creates: verb(CREATING),
            about_people: any_listed(&name, PEOPLE),
            executes_queries: any_listed(&name, EXECUTES_QUERIES) || any_listed(&description, EXECUTES_QUERIES),
            budget: Cell::new(MAX_VISITS),
        }
    }
}

/// What an argument decides; nothing where it need not be watched.
pub(super) fn sink(name: &str, schema: &Value, setting: &Setting<'_>) -> Option<Finding> {
    strictest(&split(name), schema, setting, 0)
}

fn strictest(words: &[String], schema: &Value, setting: &Setting<'_>, depth: usize) -> Option<Finding> {
    let Some(budget) = setting.budget.get().checked_sub(1) else {
        return text(words, None, setting);
    };
    setting.budget.set(budget);
    let mut worst: Option<Finding> = None;
    let mut consider = |finding: Option<Finding>| {
        if let Some(finding) = finding
            && worst.as_ref().is_none_or(|worst| severity(finding.kind) > severity(worst.kind))
        {
            worst = Some(finding);
        }
    };
    for shape in shapes(schema, setting.root) {
        match shape {
            Shape::Closed | Shape::Boolean => {}
            Shape::Number => consider(number(words, setting)),
            Shape::Text(format) => consider(text(words, format, setting)),
            Shape::List(items) if depth < MAX_DEPTH => consider(strictest(words, items, setting, depth + 1)),
            Shape::Record(fields) if depth < MAX_DEPTH => {
                // The whole argument decides whatever the most telling of its fields decides.
                for (field, inner) in fields {
                    consider(strictest(&split(field), inner, setting, depth + 1).map(|finding| Finding {
                        why: format!("through its field {field}: {}", finding.why),
                        ..finding
                    }));
                }
            }
            Shape::Dictionary(_) | Shape::Unknown | Shape::List(_) | Shape::Record(_) => {
                consider(text(words, None, setting));
            }
        }
    }
    worst
}

/// Which of several findings for one argument wins.
const fn severity(kind: SinkKind) -> u8 {
    match kind {
        SinkKind::Content => 0,
        SinkKind::Amount => 1,
        SinkKind::Path => 2,
        SinkKind::Destination => 3,
        SinkKind::Credential => 4,
        SinkKind::Command => 5,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every rule of this file gives an Option")]
fn found(kind: SinkKind, why: &str) -> Option<Finding> {
    Some(Finding { kind, why: why.to_owned() })
}

fn text(words: &[String], format: Option<&str>, setting: &Setting<'_>) -> Option<Finding> {
    let last = words.last().map(String::as_str).unwrap_or_default();
    let has = |list: &[&str]| any_listed(words, list);
    if is_credential(words) {
        return found(SinkKind::Credential, "it grants access");
    }
    if is_command(words, setting) {
        return found(SinkKind::Command, "it determines what is executed");
    }
    if has(NETWORK) || matches!(format, Some("uri" | "uri-reference" | "iri" | "url" | "hostname" | "ipv4" | "ipv6")) {
        return found(SinkKind::Destination, "it determines where a request goes");
    }
    if !setting.acts {
        return None;
    }
    if is_id(words) {
        return id(words, setting);
    }
    if matches!(format, Some("date" | "date-time" | "time" | "duration")) {
        return found(SinkKind::Content, "it is a date or a time");
    }
    if format == Some("email") {
        return found(SinkKind::Destination, "it is an address");
    }
    if listed(last, CONTENT) {
        return found(SinkKind::Content, "it is the content that is written or sent");
    }
    if is_amount(words) {
        return found(SinkKind::Amount, "it is an amount");
    }
    if has(PATH) {
        return found(SinkKind::Path, "it names a file or directory");
    }
    if has(DESTINATION) {
        return found(SinkKind::Destination, "it names the recipient or target");
    }
    if last == "name" && setting.creates && !setting.about_people {
        return found(SinkKind::Content, "it is the name of the new object");
    }
    if listed(last, SETTING) || (last == "code" && has(CATALOGUE_CODE)) {
        return found(SinkKind::Content, "it is a small setting");
    }
    found(SinkKind::Destination, "nothing shows that it is harmless")
}

fn number(words: &[String], setting: &Setting<'_>) -> Option<Finding> {
    if is_credential(words) {
        return found(SinkKind::Credential, "it grants access");
    }
    if !setting.acts {
        return None;
    }
    if is_id(words) {
        return id(words, setting);
    }
    if is_amount(words) {
        return found(SinkKind::Amount, "it is an amount");
    }
    if any_listed(words, NUMERIC_ADDRESS) {
        return found(SinkKind::Destination, "it is the number of the target");
    }
    None
}

fn is_credential(words: &[String]) -> bool {
    let has = |list: &[&str]| any_listed(words, list);
    let last = words.last().map(String::as_str).unwrap_or_default();
    has(CREDENTIAL)
        || (has(&["token"]) && !has(HARMLESS_TOKEN))
        || (has(&["key"]) && has(KEY_TO))
        || last == "pin"
        || (last == "code" && has(CODE_TO))
}

fn is_command(words: &[String], setting: &Setting<'_>) -> bool {
    let last = words.last().map(String::as_str).unwrap_or_default();
    any_listed(words, COMMAND)
        || (last == "code" && !any_listed(words, CATALOGUE_CODE))
        || (setting.executes_queries && listed(last, QUERY))
        || (setting.acts && listed(last, EXPRESSION))
}

fn is_id(words: &[String]) -> bool {
    words.last().is_some_and(|last| ["id", "ids", "uuid", "guid"].contains(&last.as_str()))
}

/// An id is a record's own, unless it is the id of somebody or of a place, or what is to be destroyed.
fn id(words: &[String], setting: &Setting<'_>) -> Option<Finding> {
    if any_listed(words, ADDRESSED_BY_ID) {
        found(SinkKind::Destination, "it is the id of the target")
    } else if setting.destroys {
        found(SinkKind::Destination, "it determines what is deleted")
    } else {
        None
    }
}

fn is_amount(words: &[String]) -> bool {
    let last = words.last().map(String::as_str).unwrap_or_default();
    listed(last, AMOUNT) || (last == "limit" && any_listed(words, MONEY_LIMIT))
}
