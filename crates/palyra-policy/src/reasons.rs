//! Reasons in plain words: what a policy's annotations say, with the facts of the request filled in.
//!
//! Values come from outside and end on somebody's screen: they are cut, and stripped of line breaks and control characters. There
//! is no placeholder for a credential, so no reason can show one.

use crate::context::tool_of;
use crate::{Context, Request, Resource, SinkKind};

/// The placeholders a reason may use.
pub(crate) const PLACEHOLDERS: [&str; 7] = ["tool", "resource", "action", "destination", "command", "path", "user"];

/// Longest value shown inside a reason, in characters.
const SHOWN_CHARACTERS: usize = 120;

pub(crate) fn fill(template: &str, request: &Request) -> String {
    let mut line = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        line.push_str(before);
        let value = after.split_once('}').and_then(|(name, tail)| value(name, request).map(|value| (value, tail)));
        match value {
            Some((value, tail)) => {
                line.push_str(&shown(&value));
                rest = tail;
            }
            None => {
                line.push('{');
                rest = after;
            }
        }
    }
    line.push_str(rest);
    line
}

/// The placeholders in a template that would stay as they are.
pub(crate) fn unknown_placeholders(template: &str) -> Vec<&str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}').map(|(name, _)| name))
        .filter(|name| !PLACEHOLDERS.contains(name))
        .collect()
}

fn value(name: &str, request: &Request) -> Option<String> {
    match name {
        "tool" => Some(tool_of(&request.context).name.clone()),
        "resource" => Some(resource_name(request)),
        "action" => Some(request.action.to_string()),
        "destination" => Some(sink_values(request, SinkKind::Destination)),
        "command" => Some(sink_values(request, SinkKind::Command)),
        "path" => Some(sink_values(request, SinkKind::Path)),
        "user" => Some(user(request)),
        _ => None,
    }
}

/// What a request acts on, for a person.
pub(crate) fn resource_name(request: &Request) -> String {
    match &request.resource {
        Resource::Tool => tool_of(&request.context).name.clone(),
        Resource::Path { name, .. } => name.clone(),
        Resource::Host(to) | Resource::Channel(to) | Resource::Worker(to) | Resource::Memory(to) => to.name.clone(),
        Resource::Secret { scope, name } => format!("{scope}/{name}"),
        Resource::Agent(name) => name.clone(),
        Resource::Run(run) => run.run.clone(),
    }
}

fn sink_values(request: &Request, kind: SinkKind) -> String {
    let Context::Effect(facts) = &request.context else { return "…".to_owned() };
    let values: Vec<&str> = facts
        .arguments
        .iter()
        .filter(|argument| argument.sink == Some(kind))
        .map(|argument| argument.value.as_deref().unwrap_or("…"))
        .collect();
    if values.is_empty() { "…".to_owned() } else { values.join(", ") }
}

fn user(request: &Request) -> String {
    match &request.principal {
        crate::Principal::Run(run) => run.user.clone(),
        crate::Principal::User(user) => user.clone(),
        crate::Principal::Device { owner, .. } => owner.clone(),
        crate::Principal::Channel(channel) => channel.clone(),
    }
}

/// One line without control characters, cut where it becomes unreadable.
pub(crate) fn shown(text: &str) -> String {
    let invisible = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let mut line: String =
        text.chars().map(|letter| if invisible(letter) { ' ' } else { letter }).take(SHOWN_CHARACTERS).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        line.push('…');
    }
    line
}
