//! What the solver found, as a request that a person can read and try.
//!
//! The solver speaks about joined sinks and arguments separately; here they become arguments again. Names that the solver left empty get
//! a plain one. Whether the request still shows the difference is not assumed: both sets decide it.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{Entities, EntityUid, EvalResult, Record};
use cedar_policy_symcc::Env;
use palyra_common::{
    Confidentiality, ContractEnum, DataOrigin, Integrity, Label, Provenance, Risk, RunMode, SinkKind, Timestamp,
};
use palyra_policy::{
    ActionKind, AnswerFacts, Argument, Asking, CommandFacts, Connection, Consequence, Containment, Context, Decision,
    Destination, EffectFacts, EffectScope, Envelope, Location, Origin, PolicySet, Principal, Request, Resource,
    RunPrincipal, SignalConfidence, SignalKind, Signals, ToolFacts,
};
use serde::Serialize;

/// In which way a proposed set permits more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Widening {
    /// It permits, or would ask about, what was denied.
    Permits,
    /// It permits unasked what a person was asked about.
    StopsAsking,
}

/// A request that a proposed set treats more permissively.
#[derive(Debug, Clone, Serialize)]
pub struct CounterExample {
    /// In which way.
    pub widening: Widening,
    /// The kind of effect.
    pub action: ActionKind,
    /// The request, if the solver's values make one on which both sets differ in the ordinary way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<Request>>,
    /// How the base decides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Decision>,
    /// How the proposed set decides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Decision>,
    /// The values as the solver gave them.
    pub values: String,
}

impl CounterExample {
    pub(crate) fn new(
        widening: Widening,
        action: ActionKind,
        env: &Env,
        base: &PolicySet,
        proposed: &PolicySet,
    ) -> Self {
        let candidates = requests(action, env).unwrap_or_default();
        let shown = candidates.into_iter().find_map(|request| {
            let (before, after) = (base.decide(&request), proposed.decide(&request));
            (after.verdict < before.verdict).then_some((before, after, request))
        });
        let values = env.to_string();
        match shown {
            Some((before, after, request)) => Self {
                widening,
                action,
                request: Some(Box::new(request)),
                base: Some(before),
                proposed: Some(after),
                values,
            },
            None => Self { widening, action, request: None, base: None, proposed: None, values },
        }
    }
}

/// The requests that the solver's values can mean, the likeliest first.
fn requests(action: ActionKind, env: &Env) -> Option<Vec<Request>> {
    let reader = Reader { entities: &env.entities };
    let context = env.request.context()?;
    let facts: BTreeMap<&str, EvalResult> =
        FIELDS.iter().filter_map(|field| context.get(field).map(|value| (*field, value))).collect();
    let principal = reader.principal(env.request.principal()?)?;
    let resource = env.request.resource()?;
    let mut resources = reader.below(resource);
    resources.push(reader.resource(resource)?);
    let context = match action {
        ActionKind::DecideApproval => Context::Answer(AnswerFacts {
            tool: reader.tool(entity(facts.get("tool")?)?),
            risk: word::<Risk>(facts.get("risk")?)?,
            reach: word(facts.get("reach")?)?,
            now: Timestamp(long(facts.get("now")?)?),
        }),
        ActionKind::CommandRead | ActionKind::CommandChange | ActionKind::CommandAdminister => {
            Context::Command(command(&facts)?)
        }
        _ => Context::Effect(Box::new(reader.effect(action, &facts)?)),
    };
    let with = |resource| Request { principal: principal.clone(), action, resource, context: context.clone() };
    Some(resources.into_iter().map(with).collect())
}

const FIELDS: [&str; 25] = [
    "tool",
    "scope",
    "risk",
    "mode",
    "labels",
    "args",
    "sinks",
    "ask_before",
    "consequential",
    "in_envelope",
    "cleared",
    "uncleared",
    "contained",
    "workspace",
    "signals",
    "now",
    "scheme",
    "port",
    "method",
    "host",
    "reach",
    "command",
    "scopes",
    "role",
    "via",
];

/// Looks up what the request refers to.
struct Reader<'a> {
    entities: &'a Entities,
}

impl Reader<'_> {
    fn attribute(&self, of: &EntityUid, name: &str) -> Option<EvalResult> {
        self.entities.get(of)?.attr(name)?.ok()
    }

    /// Ids of the ancestors that have a type.
    fn above(&self, of: &EntityUid, kind: &str) -> Vec<String> {
        let ancestors = self.entities.ancestors(of).into_iter().flatten();
        ancestors.filter(|uid| uid.type_name().to_string() == kind).map(named).collect()
    }

    fn run(&self, uid: &EntityUid) -> Option<RunPrincipal> {
        let attribute = |name: &str| self.attribute(uid, name).and_then(|value| entity(&value).map(named));
        Some(RunPrincipal {
            run: named(uid),
            session: attribute("session")?,
            agent: attribute("agent")?,
            user: attribute("owner")?,
            roles: self.above(uid, "Role").into_iter().collect(),
            device: self.above(uid, "Device").into_iter().next(),
            channel: self.above(uid, "Channel").into_iter().next(),
            worker: self.above(uid, "Worker").into_iter().next(),
        })
    }

    fn principal(&self, uid: &EntityUid) -> Option<Principal> {
        match uid.type_name().to_string().as_str() {
            "Run" => self.run(uid).map(Principal::Run),
            "User" => Some(Principal::User(named(uid))),
            "Device" => {
                let owner = self.above(uid, "User").into_iter().next().unwrap_or_else(|| "someone".to_owned());
                Some(Principal::Device { id: named(uid), owner })
            }
            "Channel" => Some(Principal::Channel(named(uid))),
            _ => None,
        }
    }

    fn resource(&self, uid: &EntityUid) -> Option<Resource> {
        let to = || Destination { name: named(uid), clearance: self.clearance(uid) };
        Some(match uid.type_name().to_string().as_str() {
            "Tool" => Resource::Tool,
            "Path" => {
                let inside = self.attribute(uid, "inside_workspace").and_then(|value| truth(&value)).unwrap_or(false);
                let location = if inside { Location::InsideWorkspace } else { Location::OutsideWorkspace };
                Resource::Path { name: named(uid), location }
            }
            "Host" => Resource::Host(Destination { name: host_name(uid), ..to() }),
            "Channel" => Resource::Channel(to()),
            "Worker" => Resource::Worker(to()),
            "Memory" => Resource::Memory(to()),
            "Agent" => Resource::Agent(named(uid)),
            "Run" => Resource::Run(self.run(uid)?),
            "Daemon" => Resource::Daemon,
            "Conversation" => {
                let owner = self.attribute(uid, "owner").and_then(|value| entity(&value).map(named))?;
                Resource::Conversation { owner }
            }
            "Secret" => {
                let part = |name: &str| self.attribute(uid, name).and_then(|value| text(&value));
                let id = named(uid);
                let (scope, name) = id.split_once('/').unwrap_or(("global", id.as_str()));
                // A real secret is called by its scope and name; the solver may have chosen them apart.
                Resource::Secret {
                    scope: part("scope").filter(|_| !id.contains('/')).unwrap_or_else(|| scope.to_owned()),
                    name: part("name").filter(|_| !id.contains('/')).unwrap_or_else(|| name.to_owned()),
                }
            }
            _ => return None,
        })
    }

    /// A host or path that lies where the solver put it: the names of these say what they are below, which the solver does not know.
    fn below(&self, uid: &EntityUid) -> Vec<Resource> {
        let name = named(uid);
        match self.resource(uid) {
            Some(Resource::Path { location, .. }) => {
                let parents = self.above(uid, "Path").into_iter();
                parents.map(|parent| Resource::Path { name: format!("{parent}/{name}"), location }).collect()
            }
            Some(Resource::Host(to)) => {
                let parents = self.above(uid, "Host").into_iter();
                parents
                    .map(|parent| Resource::Host(Destination { name: format!("some.{parent}"), ..to.clone() }))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn clearance(&self, uid: &EntityUid) -> Confidentiality {
        let rank = self.attribute(uid, "clearance").and_then(|value| long(&value));
        rank.and_then(ranked).unwrap_or(Confidentiality::Public)
    }

    fn tool(&self, uid: &EntityUid) -> ToolFacts {
        let offered_by = |part: &str| self.attribute(uid, part).and_then(|value| entity(&value).map(named));
        let server = offered_by("server");
        let skill = || offered_by("skill").or_else(|| self.above(uid, "Skill").into_iter().next()).map(Origin::Skill);
        ToolFacts {
            name: named(uid),
            origin: server.map(Origin::Server).or_else(skill),
            clearance: self.clearance(uid),
        }
    }

    fn effect(&self, action: ActionKind, facts: &BTreeMap<&str, EvalResult>) -> Option<EffectFacts> {
        let is = |name: &str| facts.get(name).and_then(truth);
        let labels = record(facts.get("labels")?)?;
        let connection = match action {
            ActionKind::Connect | ActionKind::Browse => Some(Connection {
                scheme: text(facts.get("scheme")?)?,
                port: u16::try_from(long(facts.get("port")?)?).ok()?,
                method: text(facts.get("method")?)?,
            }),
            _ => None,
        };
        let secret_for = match facts.get("host") {
            Some(host) => {
                let uid = entity(host)?;
                Some(Destination { name: host_name(uid), clearance: self.clearance(uid) })
            }
            None => None,
        };
        Some(EffectFacts {
            tool: self.tool(entity(facts.get("tool")?)?),
            scope: word::<EffectScope>(facts.get("scope")?)?,
            risk: word::<Risk>(facts.get("risk")?)?,
            mode: word::<RunMode>(facts.get("mode")?)?,
            labels: label(labels)?,
            arguments: self.arguments(record(facts.get("sinks")?)?, entity(facts.get("args")?)?)?,
            empty: BTreeSet::new(),
            asking: if is("ask_before")? { Asking::AskBefore } else { Asking::NotListed },
            consequence: if is("consequential")? { Consequence::Consequential } else { Consequence::Contained },
            envelope: if is("in_envelope")? { Envelope::Inside } else { Envelope::Outside },
            uncleared: if is("cleared")? { BTreeSet::new() } else { places(facts.get("uncleared")) },
            workspace: text(facts.get("workspace")?)?,
            containment: if is("contained")? { Containment::Contained } else { Containment::Reaching },
            signals: signals(record(facts.get("signals")?)?)?,
            connection,
            secret_for,
            now: Timestamp(long(facts.get("now")?)?),
        })
    }

    /// One argument for each name and value of each sink, then the tags that no sink speaks about.
    fn arguments(&self, sinks: &Record, args: &EntityUid) -> Option<Vec<Argument>> {
        let mut found: Vec<Argument> = Vec::new();
        for kind in SinkKind::ALL {
            let Some(sink) = sinks.get(kind.as_str()) else { continue };
            let sink = record(sink)?;
            let strings = |name: &str| -> BTreeSet<String> {
                match sink.get(name) {
                    Some(EvalResult::Set(set)) => set.iter().filter_map(text).collect(),
                    _ => BTreeSet::new(),
                }
            };
            let mut names = strings("names").into_iter().filter(|name| !name.is_empty());
            let mut values = strings("values").into_iter();
            let readers = sink.get("readers").map(|_| strings("readers"));
            let integrity = ranked::<Integrity>(long(sink.get("integrity_rank")?)?)?;
            let confidentiality = ranked::<Confidentiality>(long(sink.get("confidentiality_rank")?)?)?;
            let outside = sink.get("outside_workspace").and_then(truth);
            for number in 1.. {
                let (name, value) = (names.next(), values.next());
                if number > 1 && name.is_none() && value.is_none() {
                    break;
                }
                let mut label = Label::new(integrity, confidentiality);
                label.readers.clone_from(&readers);
                found.push(Argument {
                    name: name
                        .filter(|name| found.iter().all(|argument| argument.name != *name))
                        .unwrap_or_else(|| format!("{kind}{number}")),
                    sink: Some(*kind),
                    provenance: word::<Provenance>(sink.get("provenance")?)?,
                    label,
                    value,
                    location: outside.map(
                        |outside| {
                            if outside { Location::OutsideWorkspace } else { Location::InsideWorkspace }
                        },
                    ),
                    source: None,
                    sentence: None,
                });
            }
        }
        for (name, tag) in self.entities.get(args).into_iter().flat_map(cedar_policy::Entity::tags) {
            let Ok(EvalResult::Record(tag)) = tag else { continue };
            if name.is_empty() || found.iter().any(|argument| argument.name == name) {
                continue;
            }
            found.push(Argument {
                name: name.to_owned(),
                sink: None,
                provenance: word::<Provenance>(tag.get("provenance")?)?,
                label: label(record(tag.get("label")?)?)?,
                value: tag.get("value").and_then(text),
                location: None,
                source: None,
                sentence: None,
            });
        }
        Some(found)
    }
}

/// The places of a set. One that is no place's name is any place that nobody named.
fn places(set: Option<&EvalResult>) -> BTreeSet<DataOrigin> {
    let Some(EvalResult::Set(names)) = set else { return [DataOrigin::Unknown].into() };
    let named = |name: &EvalResult| text(name).and_then(|name| name.parse().ok()).unwrap_or(DataOrigin::Unknown);
    let places: BTreeSet<DataOrigin> = names.iter().map(named).collect();
    if places.is_empty() { [DataOrigin::Unknown].into() } else { places }
}

/// The id, or a plain name if the solver had no use for one.
fn named(uid: &EntityUid) -> String {
    let id: &str = uid.id().as_ref();
    if id.is_empty() { format!("some-{}", uid.type_name().to_string().to_ascii_lowercase()) } else { id.to_owned() }
}

fn host_name(uid: &EntityUid) -> String {
    let id: &str = uid.id().as_ref();
    let plain = !id.is_empty() && id.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter));
    if plain { id.to_owned() } else { "some-host".to_owned() }
}

fn signals(fields: &Record) -> Option<Signals> {
    let EvalResult::Set(kinds) = fields.get("kinds")? else { return None };
    Some(Signals {
        kinds: kinds.iter().map(word::<SignalKind>).collect::<Option<_>>()?,
        confidence: ranked::<SignalConfidence>(long(fields.get("confidence_rank")?)?)?,
        at_source: truth(fields.get("at_source")?)?,
    })
}

/// A command, with plain words where the solver left them open.
fn command(facts: &BTreeMap<&str, EvalResult>) -> Option<CommandFacts> {
    let given = |name: &str, otherwise: &str| {
        let text = facts.get(name).and_then(text)?;
        Some(if text.is_empty() { otherwise.to_owned() } else { text })
    };
    let EvalResult::Set(scopes) = facts.get("scopes")? else { return None };
    Some(CommandFacts {
        command: given("command", "some.command")?,
        scope: one_of(&given("scope", "runs:read")?)?,
        scopes: scopes.iter().map(|scope| one_of(&text(scope)?)).collect::<Option<_>>()?,
        role: one_of(&given("role", "viewer")?)?,
        via: given("via", "api_token")?,
        workspace: facts.get("workspace").and_then(text),
        now: Timestamp(long(facts.get("now")?)?),
    })
}

fn one_of<Word: ContractEnum>(text: &str) -> Option<Word> {
    Word::ALL.iter().copied().find(|word| word.as_str() == text)
}

fn label(fields: &Record) -> Option<Label> {
    let integrity = word::<Integrity>(fields.get("integrity")?)?;
    Some(Label::new(integrity, word::<Confidentiality>(fields.get("confidentiality")?)?))
}

fn word<Word: ContractEnum>(value: &EvalResult) -> Option<Word> {
    let id: &str = entity(value)?.id().as_ref();
    Word::ALL.iter().copied().find(|word| word.as_str() == id)
}

fn ranked<Word: ContractEnum>(rank: i64) -> Option<Word> {
    Word::ALL.get(usize::try_from(rank).ok()?).copied()
}

fn entity(value: &EvalResult) -> Option<&EntityUid> {
    if let EvalResult::EntityUid(uid) = value { Some(uid) } else { None }
}

fn record(value: &EvalResult) -> Option<&Record> {
    if let EvalResult::Record(record) = value { Some(record) } else { None }
}

fn text(value: &EvalResult) -> Option<String> {
    if let EvalResult::String(text) = value { Some(text.clone()) } else { None }
}

fn long(value: &EvalResult) -> Option<i64> {
    if let EvalResult::Long(number) = value { Some(*number) } else { None }
}

fn truth(value: &EvalResult) -> Option<bool> {
    if let EvalResult::Bool(truth) = value { Some(*truth) } else { None }
}
