//! Patterns that a person agreed to, as policies.
//!
//! A [`Pattern`] says which calls of one tool are meant: each argument that is not reviewed content has a [`ValuePattern`]. A [`PatternGrant`]
//! binds it to a run, a session or a user and becomes a policy with `@approval("agreed")`: it answers the questions that the person was asked
//! and permits nothing that the other policies do not permit.
//!
//! INVARIANT: every argument of a call is named by the pattern. What a review calls content may say anything that is no more confidential than
//! what was agreed to; every other argument fits its value, down to the last key, whether or not anybody reviewed it. A call that brings a
//! credential is asked about every time, so that no credential is written into a policy. A call that may carry data of one place more, or about
//! which one policy more asks, is asked about again. Facts that a pattern does not have, because it is older than they are, match nothing.

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::{ApprovalId, Confidentiality, DataOrigin, Integrity, Timestamp};
use serde::{Deserialize, Serialize};

use crate::annotations::is_plain;
use crate::cedar_text::{beginning_with, containing, quoted};
use crate::compile::compile;
use crate::context::MAX_VALUE_BYTES;
use crate::deep_stack::on_deep_stack;
use crate::names::Names;
use crate::reasons::{place, shown};
use crate::vocabulary::Rank;
use crate::{Argument, Context, Origin, PolicyError, PolicySource, Provenance, Request, Resource, SinkKind};

/// The name under which approved patterns are loaded; it begins their ids.
pub const APPROVED_FILE: &str = "approved.cedar";

/// The kinds of classified arguments whose values a pattern must cover, beside all that nobody classified.
const COVERED: [SinkKind; 4] = [SinkKind::Destination, SinkKind::Command, SinkKind::Path, SinkKind::Amount];

/// What the rest of a value may not contain when only its beginning was agreed to: whatever lets a shell do something else, and `..`,
/// which leaves a directory.
pub(crate) const NEVER_IN_THE_REST: [&str; 17] =
    [";", "&", "|", "`", "$", "<", ">", "(", ")", "{", "}", "\\", "\n", "\r", "\t", "\0", ".."];

/// Most arguments and most alternatives of one argument.
const MAX_PARTS: usize = 32;

/// Which values of an argument are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValuePattern {
    /// This one.
    Exact(String),
    /// One of these.
    OneOf(BTreeSet<String>),
    /// What begins like this. It ends with a space or a `/`, so that a word or a segment is whole.
    Prefix(String),
    /// Whatever the user, the operator or a trusted field of a tool gave.
    AnyTrusted,
}

/// Which calls of a tool are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The tool.
    pub tool: String,
    /// All arguments that are not reviewed content.
    pub arguments: BTreeMap<String, ValuePattern>,
    /// The arguments that are there and hold nothing, as `name: []`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub empty: BTreeSet<String>,
    /// The arguments with reviewed content, which may say anything.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub content: BTreeSet<String>,
    /// The highest confidentiality of content.
    pub content_up_to: Confidentiality,
    /// The workspace in which it holds; in every one if it was agreed to before patterns said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The method of the connections that are meant, for calls that connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Where the arguments go, if they leave the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<DataOrigin>,
    /// The places whose data may go there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cleared: BTreeSet<DataOrigin>,
    /// The policies whose questions were answered by agreeing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub answers: BTreeSet<String>,
}

/// Where a pattern holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternScope {
    /// In one run.
    Run(String),
    /// In one session.
    Session(String),
    /// In everything a user does.
    User(String),
}

/// A pattern that a person agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternGrant {
    /// Its name: lower case letters, digits, `_` and `-`. The policy has the id `approved.<name>`.
    pub id: String,
    /// Where it holds.
    pub scope: PatternScope,
    /// What it covers.
    pub pattern: Pattern,
    /// When it ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The approval it came from.
    pub approval: ApprovalId,
}

/// A call as a pattern sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Where the run works.
    pub workspace: Option<String>,
    /// The method, if it connects.
    pub method: Option<String>,
    /// Its arguments that hold nothing, as `name: []`.
    pub empty: BTreeSet<String>,
    /// Where the arguments go, if they leave the workspace.
    pub destination: Option<DataOrigin>,
    /// The places whose data it may hold and that its destination is not cleared for.
    pub uncleared: BTreeSet<DataOrigin>,
}

impl ObservedCall {
    /// The call that a request is about, if it is about one.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        match &request.context {
            Context::Effect(facts) => Some(Self {
                tool: facts.tool.name.clone(),
                arguments: facts.arguments.clone(),
                workspace: Some(facts.workspace.clone()).filter(|workspace| !workspace.is_empty()),
                method: facts.connection.as_ref().map(|connection| connection.method.to_ascii_uppercase()),
                empty: facts.empty.clone(),
                destination: match (&facts.tool.origin, &request.resource) {
                    (Some(Origin::Server(server)), _) => Some(DataOrigin::Server(server.clone())),
                    (Some(Origin::Skill(skill)), _) => Some(DataOrigin::Skill(skill.clone())),
                    (None, Resource::Host(host)) => Some(DataOrigin::Host(host.name.clone())),
                    (None, _) => None,
                },
                uncleared: facts.uncleared.clone(),
            }),
            Context::Answer(_) | Context::Command(_) => None,
        }
    }
}

impl ValuePattern {
    fn check(&self, name: &str) -> Result<(), PolicyError> {
        let bad = |reason: &str| Err(PolicyError::bad_pattern(format!("argument `{name}`: {reason}")));
        let values: Vec<&String> = match self {
            Self::Exact(value) | Self::Prefix(value) => vec![value],
            Self::OneOf(values) if values.is_empty() || values.len() > MAX_PARTS => {
                return bad(&format!("give 1 to {MAX_PARTS} alternatives"));
            }
            Self::OneOf(values) => values.iter().collect(),
            Self::AnyTrusted => Vec::new(),
        };
        if values.iter().any(|value| value.len() > MAX_VALUE_BYTES) {
            return bad("the value is too long");
        }
        if let Self::Prefix(prefix) = self {
            if prefix.trim_end_matches([' ', '/']).is_empty() || !prefix.ends_with([' ', '/']) {
                return bad("a prefix must end with a space, or with a `/` after other text");
            }
            if NEVER_IN_THE_REST.iter().any(|piece| prefix.contains(piece)) {
                return bad("a prefix may not contain shell metacharacters or `..`");
            }
        }
        Ok(())
    }

    fn covers(&self, argument: &Argument) -> bool {
        let value = argument.value.as_deref();
        match self {
            Self::Exact(exact) => value == Some(exact),
            Self::OneOf(values) => value.is_some_and(|value| values.contains(value)),
            Self::Prefix(prefix) => value.is_some_and(|value| {
                let begins = value.starts_with(prefix.as_str()) || value == prefix.trim_end_matches(' ');
                begins && !NEVER_IN_THE_REST.iter().any(|piece| value.contains(piece))
            }),
            Self::AnyTrusted => {
                argument.provenance <= Provenance::ToolTrusted && argument.label.integrity < Integrity::Untrusted
            }
        }
    }

    /// The same as a Cedar expression over the argument of that name.
    fn expression(&self, name: &str) -> String {
        let name = quoted(name);
        let argument = format!("context.args.getTag({name})");
        let known = format!("context.args.hasTag({name}) && {argument} has value");
        match self {
            Self::Exact(value) => format!("{known} && {argument}.value == {}", quoted(value)),
            Self::OneOf(values) => {
                let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
                format!("{known} && [{}].contains({argument}.value)", values.join(", "))
            }
            Self::Prefix(prefix) => {
                let whole = quoted(prefix.trim_end_matches(' '));
                let never: Vec<String> = NEVER_IN_THE_REST
                    .iter()
                    .map(|piece| format!("{argument}.value like {}", containing(piece)))
                    .collect();
                format!(
                    "{known} && ({argument}.value == {whole} || {argument}.value like {}) && !({})",
                    beginning_with(prefix),
                    never.join(" || ")
                )
            }
            Self::AnyTrusted => format!(
                "context.args.hasTag({name}) && {argument}.provenance_rank <= {} && {argument}.label.integrity_rank < {}",
                Provenance::ToolTrusted.rank(),
                Integrity::Untrusted.rank()
            ),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Exact(value) => format!("`{}`", shown(value)),
            Self::OneOf(values) => {
                values.iter().map(|value| format!("`{}`", shown(value))).collect::<Vec<_>>().join(" or ")
            }
            Self::Prefix(prefix) => format!("`{}*`", shown(prefix)),
            Self::AnyTrusted => "any value given by you or the operator".to_owned(),
        }
    }
}

impl Pattern {
    /// Whether a call is meant, apart from who asks about it. The policy made from the pattern says the same.
    #[must_use]
    pub fn covers(&self, call: &ObservedCall) -> bool {
        let named = |name: &str| call.arguments.iter().find(|argument| argument.name == name);
        let all_named = self.arguments.iter().all(|(name, value)| named(name).is_some_and(|found| value.covers(found)));
        let nothing_else = call.arguments.iter().all(|argument| match argument.sink {
            Some(SinkKind::Content) => {
                self.content.contains(&argument.name) && argument.label.confidentiality <= self.content_up_to
            }
            Some(SinkKind::Credential) => false,
            _ => self.arguments.contains_key(&argument.name),
        });
        let flows = (self.destination.is_none() || self.destination == call.destination)
            && self.cleared.is_superset(&call.uncleared);
        let here = self.workspace.is_none() || self.workspace == call.workspace;
        let so = self.method.is_none() || self.method == call.method;
        call.tool == self.tool && here && so && flows && all_named && nothing_else && self.empty == call.empty
    }

    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        if self.arguments.len() + self.content.len() + self.empty.len() > MAX_PARTS {
            return Err(PolicyError::bad_pattern(format!("more than {MAX_PARTS} arguments")));
        }
        if self.answers.iter().any(|id| id.is_empty() || id.contains(char::is_whitespace)) {
            return Err(PolicyError::bad_pattern("the id of a policy has no spaces"));
        }
        if self.tool.is_empty() || self.tool.len() > MAX_VALUE_BYTES {
            return Err(PolicyError::bad_pattern("the tool needs a name"));
        }
        self.arguments.iter().try_for_each(|(name, value)| value.check(name))
    }

    /// What must hold, as `when` and `unless` clauses.
    fn conditions(&self) -> Vec<String> {
        let mut conditions = vec![
            format!("when {{ context.tool == Tool::{} }}", quoted(&self.tool)),
            "unless { context.sinks has credential }".to_owned(),
            format!(
                "unless {{ context.sinks has content && context.sinks.content.confidentiality_rank > {} }}",
                self.content_up_to.rank()
            ),
        ];
        let listed =
            |names: &mut dyn Iterator<Item = &String>| names.map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let steering = listed(&mut self.arguments.keys());
        let others = listed(&mut self.arguments.keys().chain(&self.empty));
        let content = listed(&mut self.content.iter());
        let kinds = COVERED.map(|kind| (kind.as_str(), &steering));
        for (kind, names) in kinds.into_iter().chain([("content", &content), ("other", &others)]) {
            // An empty set has no type in Cedar; without names there must be no such argument at all.
            let except = if names.is_empty() {
                String::new()
            } else {
                format!(" && !([{names}].containsAll(context.sinks.{kind}.names))")
            };
            conditions.push(format!("unless {{ context.sinks has {kind}{except} }}"));
        }
        if !self.empty.is_empty() {
            let empty = listed(&mut self.empty.iter());
            conditions.push(format!(
                "when {{ context.sinks has other && context.sinks.other.names.containsAll([{empty}]) }}"
            ));
        }
        let places: Vec<String> = self.cleared.iter().map(|place| quoted(&place.to_string())).collect();
        conditions.push(if places.is_empty() {
            "when { context.cleared }".to_owned()
        } else {
            format!("when {{ [{}].containsAll(context.uncleared) }}", places.join(", "))
        });
        conditions.extend(match &self.destination {
            Some(DataOrigin::Server(name)) => {
                let server = format!("Server::{}", quoted(name));
                Some(format!("when {{ context.tool has server && context.tool.server == {server} }}"))
            }
            Some(DataOrigin::Skill(id)) => {
                let skill = format!("Skill::{}", quoted(id));
                Some(format!("when {{ context.tool has skill && context.tool.skill == {skill} }}"))
            }
            Some(DataOrigin::Host(name)) => {
                Some(format!("when {{ resource has name && resource.name == {} }}", quoted(name)))
            }
            Some(DataOrigin::User | DataOrigin::Operator | DataOrigin::Workspace | DataOrigin::Unknown) | None => None,
        });
        conditions
            .extend(self.workspace.iter().map(|here| format!("when {{ context.workspace == {} }}", quoted(here))));
        conditions.extend(
            self.method
                .iter()
                .map(|method| format!("when {{ context has method && context.method == {} }}", quoted(method))),
        );
        conditions.extend(self.arguments.iter().map(|(name, value)| format!("when {{ {} }}", value.expression(name))));
        conditions
    }
}

impl PatternGrant {
    /// What a person is shown and agrees to: "palyra.process.run `cargo test *` in this session".
    #[must_use]
    pub fn sentence(&self) -> String {
        let reach = match &self.scope {
            PatternScope::Run(_) => "in this run",
            PatternScope::Session(_) => "in this session",
            PatternScope::User(_) => "in all your sessions",
        };
        let until = self.expires_at.map(|until| format!(" until {}", until.to_rfc3339())).unwrap_or_default();
        format!("{} {reach}{until}", self.pattern.sentence())
    }

    /// Id of the policy this grant makes.
    #[must_use]
    pub fn policy_id(&self) -> String {
        format!("approved.{}", self.id)
    }
}

impl Pattern {
    /// What is covered, for a person: "palyra.process.run `cargo test *`".
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut parts = self.arguments.iter();
        let mut values = match (parts.next(), parts.next()) {
            (None, _) => String::new(),
            (Some((_, only)), None) => format!(" {}", only.shown()),
            _ => {
                let each = self.arguments.iter().map(|(name, value)| format!("{} {}", shown(name), value.shown()));
                format!(" with {}", each.collect::<Vec<_>>().join(", "))
            }
        };
        if !self.empty.is_empty() {
            let empty: Vec<String> = self.empty.iter().map(|name| shown(name)).collect();
            values.push_str(&format!(" and empty {}", empty.join(", ")));
        }
        if !self.content.is_empty() {
            let names: Vec<String> = self.content.iter().map(|name| format!("`{}`", shown(name))).collect();
            values.push_str(&format!(", whatever {} says ({})", names.join(" or "), self.content_up_to));
        }
        if !self.cleared.is_empty() {
            let places: Vec<String> = self.cleared.iter().map(place).collect();
            let to = self.destination.as_ref().map_or_else(|| "its destination".to_owned(), place);
            values.push_str(&format!(", with data from {} going to {to}", places.join(", ")));
        }
        format!("{}{values}", shown(&self.tool))
    }
}

/// The policy of a pattern that a person agreed to, as Cedar text. Texts of several patterns together are one
/// [`PolicySource`] named [`APPROVED_FILE`].
///
/// # Errors
/// When the pattern is none that may be agreed to, or the engine is broken.
pub fn pattern_policy(grant: &PatternGrant) -> Result<String, PolicyError> {
    if !is_plain(&grant.id) {
        return Err(PolicyError::bad_pattern("the id may contain only lower-case letters, digits, `_` and `-`"));
    }
    grant.pattern.check()?;
    let principal = match &grant.scope {
        PatternScope::Run(run) => format!("principal == Run::{}", quoted(run)),
        PatternScope::Session(session) => format!("principal in Session::{}", quoted(session)),
        PatternScope::User(user) => format!("principal in User::{}", quoted(user)),
    };
    // Braces would be placeholders.
    let sentence = grant.sentence().replace(['{', '}'], "|");
    let mut text = format!(
        "@id({})\n@approval(\"agreed\")\n@answers({})\n@note({})\n@reason_person({})\n@reason_model(\"a person has allowed calls like this\")\n\
         permit ({principal}, action in Action::\"effect\", resource)\n",
        quoted(&grant.id),
        quoted(&grant.pattern.answers.iter().map(String::as_str).collect::<Vec<_>>().join(" ")),
        quoted(&format!("approval {}", grant.approval)),
        quoted(&format!("a person allowed {sentence}")),
    );
    let mut conditions = grant.pattern.conditions();
    conditions.extend(grant.expires_at.map(|until| format!("when {{ context.now < {} }}", until.0)));
    for condition in conditions {
        text.push_str(&condition);
        text.push('\n');
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push_str(";\n");
    // A text that does not load would keep every later change from taking effect, so it is tried here.
    let source = PolicySource::new(APPROVED_FILE, &text);
    on_deep_stack(|| compile(Names::get()?, &source).map(drop)).map_err(|error| match error {
        PolicyError::Broken { .. } => error,
        error => PolicyError::bad_pattern(error),
    })?;
    Ok(text)
}
