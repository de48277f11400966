//! Reasons in plain words: what a policy's annotations say, with the facts of the request filled in.
//!
//! Values come from outside and end on somebody's screen: they are cut, and stripped of line breaks, control characters and the marks
//! that a reason sets around them, so that a value cannot pretend to be part of the reason. No reason shows a credential or what
//! stands around it. The model is never told sources: what an attacker wrote must not come back to it as Palyra's own words.

use palyra_common::{DataOrigin, Integrity};

use crate::context::{counted, tool_of};
use crate::{Argument, Context, Provenance, Request, Resource, SinkKind};

/// Longest value shown inside a reason, in characters.
const SHOWN_CHARACTERS: usize = 120;
/// Longest piece of the text around a value.
const SENTENCE_CHARACTERS: usize = 160;
/// How many arguments a reason speaks about; the approval itself shows all of them.
const SHOWN_ARGUMENTS: usize = 4;

/// For whom a reason is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Person,
    Model,
}

/// What a reason may fill in. `…Source` says of each doubtful argument of that kind where its value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    Tool,
    Resource,
    Action,
    User,
    Destination,
    Command,
    Path,
    Scope,
    DestinationSource,
    CommandSource,
    PathSource,
    CredentialSource,
    Uncleared,
}

impl Placeholder {
    fn named(name: &str, reader: Reader) -> Option<Self> {
        match (name, reader) {
            ("tool", _) => Some(Self::Tool),
            ("resource", _) => Some(Self::Resource),
            ("action", _) => Some(Self::Action),
            ("user", _) => Some(Self::User),
            ("destination", _) => Some(Self::Destination),
            ("command", _) => Some(Self::Command),
            ("path", _) => Some(Self::Path),
            ("scope", _) => Some(Self::Scope),
            ("uncleared", _) => Some(Self::Uncleared),
            ("destination_source", Reader::Person) => Some(Self::DestinationSource),
            ("command_source", Reader::Person) => Some(Self::CommandSource),
            ("path_source", Reader::Person) => Some(Self::PathSource),
            ("credential_source", Reader::Person) => Some(Self::CredentialSource),
            _ => None,
        }
    }

    fn value(self, request: &Request) -> String {
        match self {
            Self::Tool => tool_of(&request.context).map_or_else(|| "…".to_owned(), |tool| shown(&tool.name)),
            Self::Resource => shown(&resource_name(request)),
            Self::Action => request.action.to_string(),
            Self::User => shown(user(request)),
            Self::Destination => values(request, SinkKind::Destination),
            Self::Command => match &request.context {
                Context::Command(facts) => shown(&facts.command),
                _ => values(request, SinkKind::Command),
            },
            Self::Path => values(request, SinkKind::Path),
            Self::Scope => match &request.context {
                Context::Command(facts) => facts.scope.to_string(),
                Context::Effect(facts) => facts.scope.to_string(),
                Context::Answer(_) => "…".to_owned(),
            },
            Self::DestinationSource => origins(request, SinkKind::Destination),
            Self::CommandSource => origins(request, SinkKind::Command),
            Self::PathSource => origins(request, SinkKind::Path),
            Self::CredentialSource => origins(request, SinkKind::Credential),
            Self::Uncleared => match &request.context {
                Context::Effect(facts) => joined(facts.uncleared.iter().map(place).collect(), ", "),
                Context::Command(_) | Context::Answer(_) => "…".to_owned(),
            },
        }
    }
}

pub(crate) fn fill(template: &str, request: &Request, reader: Reader) -> String {
    let mut line = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        line.push_str(before);
        let found =
            after.split_once('}').and_then(|(name, tail)| Placeholder::named(name, reader).map(|name| (name, tail)));
        match found {
            Some((placeholder, tail)) => {
                line.push_str(&placeholder.value(request));
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
pub(crate) fn unknown_placeholders(template: &str, reader: Reader) -> Vec<&str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}').map(|(name, _)| name))
        .filter(|name| Placeholder::named(name, reader).is_none())
        .collect()
}

/// Why something is denied that nothing forbids.
pub(crate) fn nothing_permits(request: &Request) -> String {
    match &request.context {
        Context::Command(facts) => {
            format!("no policy permits `{}` to a principal with the role {}", shown(&facts.command), facts.role)
        }
        _ => format!("no policy permits `{}` on `{}`", request.action, shown(&resource_name(request))),
    }
}

/// What a request acts on, for a person.
fn resource_name(request: &Request) -> String {
    match &request.resource {
        Resource::Tool => tool_of(&request.context).map_or_else(|| "…".to_owned(), |tool| tool.name.clone()),
        Resource::Path { name, .. } => name.clone(),
        Resource::Host(to) | Resource::Channel(to) | Resource::Worker(to) | Resource::Memory(to) => to.name.clone(),
        Resource::Secret { scope, name } => format!("{scope}/{name}"),
        Resource::Agent(name) => name.clone(),
        Resource::Run(run) => run.run.clone(),
        Resource::Daemon => "the daemon".to_owned(),
        Resource::Conversation { owner } => owner.clone(),
    }
}

/// The arguments of a kind that a reason is about: those whose value nobody trustworthy gave, or all if there are none.
fn concerned(request: &Request, kind: SinkKind) -> Vec<&Argument> {
    let Context::Effect(facts) = &request.context else { return Vec::new() };
    let all: Vec<&Argument> = facts.arguments.iter().filter(|argument| argument.sink == Some(kind)).collect();
    let doubtful: Vec<&Argument> = all.iter().copied().filter(|argument| is_doubtful(argument)).collect();
    if doubtful.is_empty() { all } else { doubtful }
}

fn is_doubtful(argument: &Argument) -> bool {
    match counted(argument) {
        Provenance::Trusted | Provenance::ToolTrusted => false,
        Provenance::Variable => argument.label.integrity == Integrity::Untrusted,
        Provenance::Pointed | Provenance::Invented | Provenance::Untrusted => true,
    }
}

fn values(request: &Request, kind: SinkKind) -> String {
    let shown =
        concerned(request, kind).into_iter().map(|argument| argument.value.as_deref().map_or("…".into(), shown));
    joined(shown.collect(), ", ")
}

fn origins(request: &Request, kind: SinkKind) -> String {
    let each = concerned(request, kind).into_iter().map(|argument| origin(argument, kind));
    joined(each.collect(), "; ")
}

/// A place in words that people know.
pub(crate) fn place(origin: &DataOrigin) -> String {
    match origin {
        DataOrigin::User => "your request".to_owned(),
        DataOrigin::Operator => "the operator's instructions".to_owned(),
        DataOrigin::Workspace => "your files".to_owned(),
        DataOrigin::Server(name) => format!("the server {}", shown(name)),
        DataOrigin::Skill(id) => format!("the skill {}", shown(id)),
        DataOrigin::Host(host) => shown(host),
        DataOrigin::Unknown => "an unknown place".to_owned(),
    }
}

fn joined(mut parts: Vec<String>, between: &str) -> String {
    parts.dedup();
    let more = parts.len().saturating_sub(SHOWN_ARGUMENTS);
    parts.truncate(SHOWN_ARGUMENTS);
    if parts.is_empty() {
        return "…".to_owned();
    }
    let mut line = parts.join(between);
    if more > 0 {
        line.push_str(&format!("{between}and {more} more"));
    }
    line
}

/// "`US13…` comes from the result of mcp.bank.read_file (call t1c1): «…IBAN: US13…»".
fn origin(argument: &Argument, kind: SinkKind) -> String {
    let value = argument.value.as_deref().filter(|_| kind != SinkKind::Credential);
    let mut line = String::new();
    if kind != SinkKind::Credential {
        line = value.map_or_else(|| "… ".to_owned(), |value| format!("`{}` ", shown(value)));
    }
    let source = argument.source.as_deref().map(shown);
    match (counted(argument), source) {
        (Provenance::Invented, None) => line.push_str("was chosen by the model and is not in the request"),
        // Only a script that the person wrote has a sentence; otherwise the source is whoever chose the value.
        (Provenance::Invented, Some(source)) if argument.sentence.is_some() => {
            line.push_str(&format!("is a shell script from {source}"));
        }
        (Provenance::Invented, Some(source)) => {
            line.push_str(&format!("was chosen by {source} and is not in the request"));
        }
        (Provenance::Trusted, None) => line.push_str("was given by the user or the operator"),
        (Provenance::ToolTrusted, None) => line.push_str("comes from a trusted field of a tool"),
        (Provenance::Variable, None) => line.push_str("comes from a variable"),
        (Provenance::Pointed | Provenance::Untrusted, None) => line.push_str("comes from untrusted text"),
        (Provenance::Pointed, Some(source)) => {
            line.push_str(&format!("comes from {source}, which the user referred to"));
        }
        (_, Some(source)) => line.push_str(&format!("comes from {source}")),
    }
    if let Some(sentence) = argument.sentence.as_deref().filter(|_| kind != SinkKind::Credential) {
        line.push_str(&format!(": «{}»", around(sentence, value.unwrap_or_default())));
    }
    line
}

/// The part of a sentence that holds the value, or its beginning.
fn around(sentence: &str, value: &str) -> String {
    let letters: Vec<char> = sentence.chars().collect();
    if letters.len() <= SENTENCE_CHARACTERS {
        return cleaned(letters.into_iter());
    }
    let at = if value.is_empty() { None } else { sentence.find(value) };
    let before = at.map_or(0, |offset| sentence.char_indices().take_while(|(place, _)| *place < offset).count());
    let room = SENTENCE_CHARACTERS.saturating_sub(value.chars().count()) / 2;
    let start = before.saturating_sub(room);
    let piece = letters.iter().copied().skip(start).take(SENTENCE_CHARACTERS);
    let mut line = String::new();
    if start > 0 {
        line.push('…');
    }
    line.push_str(&cleaned(piece));
    if start + SENTENCE_CHARACTERS < letters.len() {
        line.push('…');
    }
    line
}

fn user(request: &Request) -> &str {
    match &request.principal {
        crate::Principal::Run(run) => &run.user,
        crate::Principal::User(user) => user,
        crate::Principal::Device { owner, .. } => owner,
        crate::Principal::Channel(channel) => channel,
    }
}

/// One line without control characters, cut where it becomes unreadable.
pub(crate) fn shown(text: &str) -> String {
    let mut line = cleaned(text.chars().take(SHOWN_CHARACTERS));
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        line.push('…');
    }
    line
}

/// Nothing that moves the cursor, hides letters, turns the direction or closes the quotation.
fn cleaned(letters: impl Iterator<Item = char>) -> String {
    let clean = |letter: char| match letter {
        '`' => '\'',
        '«' | '»' => '"',
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => ' ',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    letters.map(clean).collect()
}
