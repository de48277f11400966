//! The facts of a request as a typed Cedar context.
//!
//! Arguments appear twice: one by one as tags of `context.args`, for policies about a certain tool, and joined per kind of sink in
//! `context.sinks`, for rules that hold for every tool. Joining is pessimistic: the least trusted provenance, the highest
//! confidentiality, the readers that all allow.

use std::collections::{BTreeSet, HashMap, HashSet};

use cedar_policy::{Entity, EntityUid, RestrictedExpression};
use palyra_common::{Confidentiality, Consequence, DataOrigin, Integrity, Label, Risk};

use crate::entities;
use crate::names::{Names, uid, word};
use crate::request::{
    AnswerFacts, Argument, Asking, CommandFacts, Containment, Context, EffectFacts, Envelope, Location, ToolFacts,
};
use crate::vocabulary::Rank;
use crate::{ActionKind, PolicyError, Principal, Provenance, Request, Resource, Signals, SinkKind};

/// Most arguments a call may bring; a tool's schema has a few dozen, a flood of them is an attack on the evaluator.
const MAX_ARGUMENTS: usize = 256;
/// Longest value that patterns look at. A longer one is refused rather than cut: a cut value could match what the whole would not.
pub(crate) const MAX_VALUE_BYTES: usize = 16_384;

type Pairs = Vec<(String, RestrictedExpression)>;

/// The context of a request and the entities that only it refers to.
pub(crate) struct BuiltContext {
    pub(crate) context: cedar_policy::Context,
    pub(crate) entities: Vec<Entity>,
}

/// The tool a request is about, if it is about one.
pub(crate) fn tool_of(context: &Context) -> Option<&ToolFacts> {
    match context {
        Context::Effect(facts) => Some(&facts.tool),
        Context::Answer(facts) => Some(&facts.tool),
        Context::Command(_) => None,
    }
}

pub(crate) fn build(names: &Names, request: &Request) -> Result<BuiltContext, PolicyError> {
    let mut built = Vec::new();
    let mut with_tool = |tool: &ToolFacts| -> Result<EntityUid, PolicyError> {
        let tool = entities::tool(names, tool)?;
        let uid = tool.uid();
        built.push(tool);
        Ok(uid)
    };
    let pairs = match &request.context {
        Context::Effect(facts) => {
            let tool = with_tool(&facts.tool)?;
            effect(names, request.action, facts, tool, &mut built)?
        }
        Context::Answer(facts) => answer(names, facts, with_tool(&facts.tool)?),
        Context::Command(facts) => command(facts, is_own(request))?,
    };
    let context = cedar_policy::Context::from_pairs(pairs).map_err(PolicyError::bad_request)?;
    Ok(BuiltContext { context, entities: built })
}

fn effect(
    names: &Names,
    action: ActionKind,
    facts: &EffectFacts,
    tool: EntityUid,
    built: &mut Vec<Entity>,
) -> Result<Pairs, PolicyError> {
    let arguments = arguments(names, &facts.arguments)?;
    let mut pairs = vec![
        pair("tool", RestrictedExpression::new_entity_uid(tool)),
        pair("scope", word(&names.scope, facts.scope)),
        pair("mode", word(&names.run_mode, facts.mode)),
        pair("labels", label(names, &facts.labels)?),
        pair("args", RestrictedExpression::new_entity_uid(arguments.uid())),
        pair("sinks", sinks(names, &facts.arguments, &facts.empty)?),
        pair("ask_before", RestrictedExpression::new_bool(facts.asking == Asking::AskBefore)),
        pair("consequential", RestrictedExpression::new_bool(facts.consequence == Consequence::Consequential)),
        pair("in_envelope", RestrictedExpression::new_bool(facts.envelope == Envelope::Inside)),
        pair("cleared", RestrictedExpression::new_bool(facts.uncleared.is_empty())),
        pair("uncleared", origins(&facts.uncleared)),
        pair("workspace", RestrictedExpression::new_string(facts.workspace.clone())),
        pair("contained", RestrictedExpression::new_bool(facts.containment == Containment::Contained)),
        pair("signals", signals(names, &facts.signals)?),
        pair("now", RestrictedExpression::new_long(facts.now.0)),
    ];
    pairs.extend(risk(names, facts.risk));
    built.push(arguments);
    match (action, &facts.connection) {
        (ActionKind::Connect | ActionKind::Browse, Some(connection)) => {
            pairs.push(pair("scheme", RestrictedExpression::new_string(connection.scheme.to_ascii_lowercase())));
            pairs.push(pair("port", RestrictedExpression::new_long(i64::from(connection.port))));
            pairs.push(pair("method", RestrictedExpression::new_string(connection.method.to_ascii_uppercase())));
        }
        (ActionKind::Connect | ActionKind::Browse, None) => {
            return Err(PolicyError::bad_request(format!("`{action}` needs a connection")));
        }
        (_, Some(_)) => return Err(PolicyError::bad_request(format!("`{action}` takes no connection"))),
        (_, None) => {}
    }
    match (action, &facts.secret_for) {
        (ActionKind::UseSecret, Some(host)) => {
            let host = entities::host(names, host)?;
            pairs.push(pair("host", RestrictedExpression::new_entity_uid(host.uid())));
            built.push(host);
        }
        (ActionKind::UseSecret, None) => {
            return Err(PolicyError::bad_request("`secret.use` needs the host it is for"));
        }
        (_, Some(_)) => return Err(PolicyError::bad_request(format!("`{action}` takes no secret"))),
        (_, None) => {}
    }
    Ok(pairs)
}

fn answer(names: &Names, facts: &AnswerFacts, tool: EntityUid) -> Pairs {
    let mut pairs = vec![
        pair("tool", RestrictedExpression::new_entity_uid(tool)),
        pair("reach", word(&names.reach, facts.reach)),
        pair("now", RestrictedExpression::new_long(facts.now.0)),
    ];
    pairs.extend(risk(names, facts.risk));
    pairs
}

/// Longest name of a command or a way in; both are words of the program.
const MAX_WORD_BYTES: usize = 128;

fn command(facts: &CommandFacts, own: bool) -> Result<Pairs, PolicyError> {
    for word in [&facts.command, &facts.via] {
        if word.is_empty() || word.len() > MAX_WORD_BYTES {
            let reason = format!("the command and its transport must each have 1 to {MAX_WORD_BYTES} bytes");
            return Err(PolicyError::bad_request(reason));
        }
    }
    let word = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let mut pairs = vec![
        pair("command", word(&facts.command)),
        pair("scope", word(facts.scope.as_str())),
        pair("scopes", strings(facts.scopes.iter().map(|scope| scope.as_str()).collect())),
        pair("role", word(facts.role.as_str())),
        pair("via", word(&facts.via)),
        pair("own", RestrictedExpression::new_bool(own)),
        pair("now", RestrictedExpression::new_long(facts.now.0)),
    ];
    pairs.extend(facts.workspace.as_ref().map(|path| pair("workspace", word(path))));
    Ok(pairs)
}

/// Whether a command concerns what belongs to its caller, or to nobody.
fn is_own(request: &Request) -> bool {
    match (&request.resource, &request.principal) {
        (Resource::Daemon, _) => true,
        (Resource::Conversation { owner }, Principal::User(caller) | Principal::Device { owner: caller, .. }) => {
            owner == caller
        }
        _ => false,
    }
}

fn pair(name: &str, value: RestrictedExpression) -> (String, RestrictedExpression) {
    (name.to_owned(), value)
}

fn risk(names: &Names, risk: Risk) -> [(String, RestrictedExpression); 2] {
    [pair("risk", word(&names.risk, risk)), pair("risk_rank", RestrictedExpression::new_long(risk.rank()))]
}

fn record(
    pairs: impl IntoIterator<Item = (String, RestrictedExpression)>,
) -> Result<RestrictedExpression, PolicyError> {
    RestrictedExpression::new_record(pairs).map_err(PolicyError::bad_request)
}

fn label(names: &Names, label: &Label) -> Result<RestrictedExpression, PolicyError> {
    record([
        pair("integrity", word(&names.integrity, label.integrity)),
        pair("integrity_rank", RestrictedExpression::new_long(label.integrity.rank())),
        pair("confidentiality", word(&names.confidentiality, label.confidentiality)),
        pair("confidentiality_rank", RestrictedExpression::new_long(label.confidentiality.rank())),
    ])
}

fn signals(names: &Names, signals: &Signals) -> Result<RestrictedExpression, PolicyError> {
    let kinds = signals.kinds.iter().map(|kind| word(&names.signal, *kind));
    record([
        pair("kinds", RestrictedExpression::new_set(kinds)),
        pair("confidence_rank", RestrictedExpression::new_long(signals.counted().rank())),
        pair("at_source", RestrictedExpression::new_bool(signals.at_source)),
    ])
}

fn provenance(names: &Names, provenance: Provenance) -> [(String, RestrictedExpression); 2] {
    [
        pair("provenance", word(&names.provenance, provenance)),
        pair("provenance_rank", RestrictedExpression::new_long(provenance.rank())),
    ]
}

fn arguments(names: &Names, arguments: &[Argument]) -> Result<Entity, PolicyError> {
    if arguments.len() > MAX_ARGUMENTS {
        return Err(PolicyError::bad_request(format!("more than {MAX_ARGUMENTS} arguments")));
    }
    let mut tags = HashMap::with_capacity(arguments.len());
    for argument in arguments {
        let mut fields = Vec::from(provenance(names, argument.provenance));
        fields.push(pair("label", label(names, &argument.label)?));
        if let Some(value) = &argument.value {
            if value.len() > MAX_VALUE_BYTES {
                let name = &argument.name;
                return Err(PolicyError::bad_request(format!(
                    "argument `{name}` is longer than {MAX_VALUE_BYTES} bytes"
                )));
            }
            fields.push(pair("value", RestrictedExpression::new_string(value.clone())));
        }
        if tags.insert(argument.name.clone(), record(fields)?).is_some() {
            return Err(PolicyError::bad_request(format!("argument `{}` is given twice", argument.name)));
        }
    }
    Entity::new_with_tags(uid(&names.arguments, "call"), [], HashSet::new(), tags).map_err(PolicyError::bad_request)
}

/// What an argument's provenance is worth among others. Untrusted bytes are no better than a variable, whatever else was said about
/// them; otherwise a pointed value beside such an argument would hide it from guards that excuse the integrity of what is pointed.
pub(crate) fn counted(argument: &Argument) -> Provenance {
    let untrusted = argument.label.integrity == Integrity::Untrusted;
    if untrusted && argument.provenance < Provenance::Pointed { Provenance::Variable } else { argument.provenance }
}

/// All arguments of one kind, joined.
struct Joined<'a> {
    provenance: Provenance,
    integrity: Integrity,
    confidentiality: Confidentiality,
    names: BTreeSet<&'a str>,
    values: BTreeSet<&'a str>,
    readers: Option<BTreeSet<&'a str>>,
    outside_workspace: bool,
}

impl<'a> Joined<'a> {
    fn of(arguments: &'a [Argument], kind: SinkKind) -> Option<Self> {
        let mut joined: Option<Self> = None;
        for argument in arguments.iter().filter(|argument| argument.sink == Some(kind)) {
            let label = &argument.label;
            let into = joined.get_or_insert_with(|| Self {
                provenance: counted(argument),
                integrity: label.integrity,
                confidentiality: label.confidentiality,
                names: BTreeSet::new(),
                values: BTreeSet::new(),
                readers: None,
                outside_workspace: false,
            });
            into.provenance = into.provenance.max(counted(argument));
            into.integrity = into.integrity.max(label.integrity);
            into.confidentiality = into.confidentiality.max(label.confidentiality);
            into.names.insert(&argument.name);
            into.values.extend(argument.value.as_deref());
            into.outside_workspace |= argument.location != Some(Location::InsideWorkspace);
            if let Some(readers) = &label.readers {
                let these: BTreeSet<&str> = readers.iter().map(String::as_str).collect();
                into.readers = Some(match into.readers.take() {
                    None => these,
                    Some(earlier) => earlier.intersection(&these).copied().collect(),
                });
            }
        }
        joined
    }

    fn expression(self, names: &Names, kind: SinkKind) -> Result<RestrictedExpression, PolicyError> {
        let mut fields = Vec::from(provenance(names, self.provenance));
        fields.push(pair("integrity_rank", RestrictedExpression::new_long(self.integrity.rank())));
        fields.push(pair("confidentiality_rank", RestrictedExpression::new_long(self.confidentiality.rank())));
        fields.push(pair("names", strings(self.names)));
        fields.push(pair("values", strings(self.values)));
        if kind == SinkKind::Path {
            fields.push(pair("outside_workspace", RestrictedExpression::new_bool(self.outside_workspace)));
        } else if let Some(readers) = self.readers {
            fields.push(pair("readers", strings(readers)));
        }
        record(fields)
    }
}

fn strings(values: BTreeSet<&str>) -> RestrictedExpression {
    RestrictedExpression::new_set(values.into_iter().map(|value| RestrictedExpression::new_string(value.to_owned())))
}

fn origins(places: &BTreeSet<DataOrigin>) -> RestrictedExpression {
    RestrictedExpression::new_set(places.iter().map(|place| RestrictedExpression::new_string(place.to_string())))
}

fn sinks(names: &Names, arguments: &[Argument], empty: &BTreeSet<String>) -> Result<RestrictedExpression, PolicyError> {
    let mut kinds = Vec::new();
    let unclassified =
        arguments.iter().filter(|argument| argument.sink.is_none()).map(|argument| argument.name.as_str());
    let others: BTreeSet<&str> = unclassified.chain(empty.iter().map(String::as_str)).collect();
    if !others.is_empty() {
        kinds.push(pair("other", record([pair("names", strings(others))])?));
    }
    for kind in SinkKind::ALL {
        if let Some(joined) = Joined::of(arguments, *kind) {
            kinds.push(pair(kind.as_str(), joined.expression(names, *kind)?));
        }
    }
    record(kinds)
}
