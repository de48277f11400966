//! Requests and sets that the tests vary.

use std::collections::BTreeSet;

use palyra_common::{Confidentiality, Integrity, Label, Risk, RunMode, Timestamp};
use palyra_policy::{
    ActionKind, Argument, Asking, Connection, Consequence, Containment, Context, Destination, EffectFacts, EffectScope,
    Envelope, Location, PolicyError, PolicySet, PolicySource, PolicySources, Principal, Provenance, Request, Resource,
    RunPrincipal, Signals, SinkKind, ToolFacts,
};

pub(crate) fn run() -> RunPrincipal {
    RunPrincipal {
        run: "run1".into(),
        session: "session1".into(),
        agent: "default".into(),
        user: "me".into(),
        roles: ["admin".to_owned()].into(),
        device: None,
        channel: None,
        worker: None,
    }
}

pub(crate) fn tool(name: &str) -> ToolFacts {
    ToolFacts { name: name.into(), origin: None, clearance: Confidentiality::Public }
}

/// A call of a tool, contained and unasked, with the reach given.
pub(crate) fn call(action: ActionKind, resource: Resource, scope: EffectScope) -> Request {
    let connection = matches!(action, ActionKind::Connect | ActionKind::Browse).then(|| Connection {
        scheme: "https".into(),
        port: 443,
        method: "GET".into(),
    });
    let secret_for = (action == ActionKind::UseSecret).then(|| to("example.org"));
    Request {
        principal: Principal::Run(run()),
        action,
        resource,
        context: Context::Effect(Box::new(EffectFacts {
            tool: tool("some.tool"),
            scope,
            risk: Risk::Low,
            mode: RunMode::Guarded,
            labels: Label::user(),
            arguments: Vec::new(),
            empty: BTreeSet::new(),
            asking: Asking::NotListed,
            consequence: Consequence::Contained,
            envelope: Envelope::Inside,
            uncleared: BTreeSet::new(),
            workspace: "/w".into(),
            containment: Containment::Reaching,
            signals: Signals::default(),
            connection,
            secret_for,
            now: Timestamp(1_763_190_000_000),
        })),
    }
}

pub(crate) fn to(name: &str) -> Destination {
    Destination { name: name.into(), clearance: Confidentiality::Public }
}

pub(crate) fn read() -> Request {
    call(ActionKind::Read, path("notes/a.txt"), EffectScope::WorkspaceRead)
}

pub(crate) fn execute() -> Request {
    call(ActionKind::Execute, Resource::Tool, EffectScope::External)
}

pub(crate) fn path(name: &str) -> Resource {
    Resource::Path { name: name.into(), location: Location::InsideWorkspace }
}

pub(crate) fn facts(request: &mut Request) -> &mut EffectFacts {
    match &mut request.context {
        Context::Effect(facts) => facts,
        Context::Answer(_) | Context::Command(_) => panic!("not an effect"),
    }
}

pub(crate) fn argument(name: &str, sink: SinkKind, provenance: Provenance) -> Argument {
    let integrity = if provenance == Provenance::Untrusted { Integrity::Untrusted } else { Integrity::User };
    Argument {
        name: name.into(),
        sink: Some(sink),
        provenance,
        label: Label::new(integrity, Confidentiality::Public),
        value: Some(format!("value of {name}")),
        location: None,
        source: None,
        sentence: None,
    }
}

/// The shipped set with one more file.
pub(crate) fn with(text: &str) -> Result<PolicySet, PolicyError> {
    PolicySet::load(&PolicySources::shipped().with_text(PolicySource::new("own.cedar", text)))
}

/// A set of this text alone.
pub(crate) fn only(text: &str) -> Result<PolicySet, PolicyError> {
    PolicySet::load(&PolicySources::default().with_text(PolicySource::new("own.cedar", text)))
}
