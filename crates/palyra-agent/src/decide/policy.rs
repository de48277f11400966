//! Deciding by policy: a proposal as the requests that Cedar judges.
//!
//! A call that touches several files is as many requests; all of them have to pass. Nothing is judged here: the facts come from
//! `palyra-flow` and the declaration, the verdict from the policies in force.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use palyra_common::config::MandateClass;
use palyra_common::{
    Confidentiality, EffectScope, ErrorCategory, RunId, SessionId, SinkKind, StableErrorEnvelope, ToStableError as _,
    ToolVerdict,
};
use palyra_flow::{ArgumentFacts, FlowFacts};
use palyra_policy::{
    APPROVED_FILE, ActionKind, AnswerFacts, Argument, Asking, Connection, Containment, Context, Decision, Destination,
    EffectFacts, Envelope, Location, ObservedCall, Origin, PatternGrant, PolicyError, PolicySource, PolicyStore,
    Principal, Request, Resource, RunPrincipal, ToolFacts, pattern_policy,
};
use palyra_tools::{CallResource, RequestTarget, ToolDeclaration, WorkspacePath};
use serde_json::Value;

use super::{AnswerProposal, Decide, Proposal, Verdict};
use crate::spec::MAIN_AGENT;

/// How the ids of agreed patterns begin.
const APPROVED_PREFIX: &str = "approved.";

/// What determined a question that `run.confirm_mandates` asks for.
pub(crate) const CONFIRM_MANDATES: &str = "engine.confirm_mandates";

/// What policies call the main agent.
const DEFAULT_AGENT: &str = "default";

/// Decides by the policies in force.
#[derive(Clone)]
pub struct PolicyDecider {
    store: Arc<PolicyStore>,
    ask_before: BTreeSet<String>,
    confirm: BTreeSet<MandateClass>,
    /// Ids of the agreed patterns that still count. A set that could not be replaced may hold others; they are asked about.
    agreed: Arc<RwLock<BTreeSet<String>>>,
}

impl PolicyDecider {
    /// Decides by this store; a person is asked before any of these tools.
    pub fn new(store: Arc<PolicyStore>, ask_before: impl IntoIterator<Item = String>) -> Self {
        Self { store, ask_before: ask_before.into_iter().collect(), confirm: BTreeSet::new(), agreed: Arc::default() }
    }

    /// The same, but a person is asked before mandates of these classes count.
    #[must_use]
    pub fn confirming(self, classes: impl IntoIterator<Item = MandateClass>) -> Self {
        Self { confirm: classes.into_iter().collect(), ..self }
    }
}

#[async_trait]
impl Decide for PolicyDecider {
    async fn decide(&self, proposal: Proposal<'_>) -> Result<Verdict, StableErrorEnvelope> {
        let requests = requests(&proposal, &self.ask_before);
        let decision = self.store.current().decide_all(&requests);
        let kept: Result<Vec<_>, _> = requests.iter().map(serde_json::to_value).collect();
        let unkept = |error: serde_json::Error| {
            StableErrorEnvelope::new("internal", ErrorCategory::Internal, format!("a request cannot be kept: {error}"))
        };
        let verdict = if self.rests_on_revoked(&decision) { ToolVerdict::NeedsApproval } else { decision.verdict };
        let mut reasons = decision.person;
        reasons.extend(decision.errors);
        let verdict = Verdict {
            verdict,
            reasons,
            told: decision.model,
            policies: decision.policies,
            asking: decision.asking,
            requests: kept.map_err(unkept)?,
        };
        Ok(self.confirmed_first(verdict, proposal.states))
    }

    async fn decide_answer(&self, answer: AnswerProposal<'_>) -> Result<Verdict, StableErrorEnvelope> {
        let request = Request {
            principal: Principal::User(answer.by.to_owned()),
            action: ActionKind::DecideApproval,
            resource: Resource::Run(run_principal(answer.run_id, answer.session_id, answer.agent, answer.owner)),
            context: Context::Answer(AnswerFacts {
                tool: ToolFacts { name: answer.tool.to_owned(), origin: None, clearance: Confidentiality::Public },
                risk: answer.risk,
                reach: answer.scope,
                now: answer.at,
            }),
        };
        let decision = self.store.decide(&request);
        Ok(Verdict {
            verdict: decision.verdict,
            reasons: decision.person,
            told: decision.model,
            policies: decision.policies,
            asking: BTreeSet::new(),
            requests: Vec::new(),
        })
    }

    fn agreed(&self, patterns: Vec<PatternGrant>) -> Result<(), StableErrorEnvelope> {
        let ids: BTreeSet<String> = patterns.iter().map(PatternGrant::policy_id).collect();
        // First the list, so that a pattern that is gone counts no more whatever happens to the set.
        let before = std::mem::replace(&mut *self.agreed.write().unwrap_or_else(PoisonError::into_inner), ids);
        if before.is_empty() && patterns.is_empty() {
            return Ok(());
        }
        let texts: Result<String, _> = patterns.iter().map(pattern_policy).collect();
        let stable = |error: PolicyError| error.to_stable();
        let texts = texts.map_err(stable)?;
        let text = (!texts.is_empty()).then(|| PolicySource::new(APPROVED_FILE, &texts));
        self.store.agree(text).map(drop).map_err(stable)
    }
}

impl PolicyDecider {
    /// Asks about a call that is permitted and states mandates of which a person wants to hear first.
    fn confirmed_first(&self, verdict: Verdict, states: &BTreeSet<MandateClass>) -> Verdict {
        let listed: Vec<&str> = self.confirm.intersection(states).copied().map(in_plain_words).collect();
        if verdict.verdict != ToolVerdict::Permit || listed.is_empty() {
            return verdict;
        }
        let reason = format!("you want to be asked before {}", listed.join(" and "));
        Verdict {
            verdict: ToolVerdict::NeedsApproval,
            reasons: vec![reason],
            policies: vec![CONFIRM_MANDATES.to_owned()],
            ..verdict
        }
    }

    fn rests_on_revoked(&self, decision: &Decision) -> bool {
        let mut patterns = decision.policies.iter().filter(|id| id.starts_with(APPROVED_PREFIX)).peekable();
        decision.verdict == ToolVerdict::Permit && patterns.peek().is_some() && {
            let agreed = self.agreed.read().unwrap_or_else(PoisonError::into_inner);
            !patterns.any(|id| agreed.contains(id))
        }
    }
}

/// What mandates of a class let a run do.
fn in_plain_words(class: MandateClass) -> &'static str {
    match class {
        MandateClass::Paying => "anything is paid",
        MandateClass::Outward => "anything goes to others",
    }
}

/// The call as patterns see it.
pub(crate) fn observed(
    flow: &FlowFacts,
    tool: &ToolDeclaration,
    workspace: &str,
    resource: &CallResource,
    arguments: &Value,
) -> ObservedCall {
    let method = match resource {
        CallResource::Request(target) => Some(target.method.to_ascii_uppercase()),
        CallResource::Files(_) | CallResource::Directory(_) | CallResource::Tool { .. } => None,
    };
    ObservedCall {
        workspace: Some(workspace.to_owned()),
        method,
        tool: tool.name.to_string(),
        arguments: flow.arguments.iter().map(|facts| argument(facts, tool.scope)).collect(),
        empty: empty(arguments),
        destination: tool.destination(resource),
        uncleared: flow.uncleared.clone(),
    }
}

/// The arguments that are there and hold nothing: no value of theirs is judged, but a list that is emptied is an effect all the same.
fn empty(arguments: &Value) -> BTreeSet<String> {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let members = arguments.as_object().into_iter().flatten();
    members.filter(|(_, value)| is_empty(value)).map(|(name, value)| format!("{name}: {value}")).collect()
}

/// What policies are told of what a call can reach.
pub(crate) fn contained(containment: &palyra_tools::Containment) -> Containment {
    match containment {
        palyra_tools::Containment::Contained => Containment::Contained,
        palyra_tools::Containment::Reaches(_) => Containment::Reaching,
    }
}

fn requests(proposal: &Proposal<'_>, ask_before: &BTreeSet<String>) -> Vec<Request> {
    let facts = facts(proposal, ask_before);
    let action = match proposal.tool.scope {
        EffectScope::Pure => ActionKind::Compute,
        EffectScope::WorkspaceRead => ActionKind::Read,
        EffectScope::WorkspaceWrite => ActionKind::Write,
        EffectScope::External => ActionKind::Execute,
    };
    let principal = principal(proposal);
    let request = |(resource, connection): (Resource, Option<Connection>)| Request {
        principal: principal.clone(),
        action: if connection.is_some() { ActionKind::Connect } else { action },
        resource,
        context: Context::Effect(Box::new(EffectFacts { connection, ..facts.clone() })),
    };
    judged(proposal.resource, proposal.flow.clearance).into_iter().map(request).collect()
}

/// What is judged of a call, one request each. A call that goes to an address is judged as a connection to its host.
fn judged(resource: &CallResource, clearance: Confidentiality) -> Vec<(Resource, Option<Connection>)> {
    match resource {
        CallResource::Files(files) => files.iter().map(|path| (inside(path), None)).collect(),
        CallResource::Directory(path) => vec![(inside(path), None)],
        CallResource::Request(target) => {
            let RequestTarget { method, scheme, host, port } = target.clone();
            let host = Resource::Host(Destination { name: host, clearance });
            vec![(host, Some(Connection { scheme, port, method }))]
        }
        CallResource::Tool { .. } => vec![(Resource::Tool, None)],
    }
}

/// A path of the workspace. Tools never follow one that leads out.
fn inside(path: &WorkspacePath) -> Resource {
    Resource::Path { name: path.to_string(), location: Location::InsideWorkspace }
}

fn principal(proposal: &Proposal<'_>) -> Principal {
    let run = proposal.run;
    let channel = run.from.as_ref().map(|from| from.channel.clone());
    Principal::Run(RunPrincipal { channel, ..run_principal(run.run_id, run.session_id, &run.agent, &run.owner) })
}

fn run_principal(run_id: RunId, session_id: SessionId, agent: &str, owner: &str) -> RunPrincipal {
    RunPrincipal {
        run: run_id.to_string(),
        session: session_id.to_string(),
        agent: if agent == MAIN_AGENT { DEFAULT_AGENT } else { agent }.to_owned(),
        user: owner.to_owned(),
        roles: BTreeSet::new(),
        device: None,
        channel: None,
        worker: None,
    }
}

fn facts(proposal: &Proposal<'_>, ask_before: &BTreeSet<String>) -> EffectFacts {
    let tool = proposal.tool;
    let listed = ask_before.contains(tool.name.as_str());
    EffectFacts {
        tool: ToolFacts {
            name: tool.name.to_string(),
            origin: tool.server.clone().map(Origin::Server).or_else(|| tool.skill.clone().map(Origin::Skill)),
            clearance: proposal.flow.clearance,
        },
        scope: tool.scope,
        risk: tool.risk,
        mode: proposal.run.mode,
        labels: proposal.flow.seen.clone(),
        arguments: proposal.flow.arguments.iter().map(|argument| self::argument(argument, tool.scope)).collect(),
        empty: empty(proposal.arguments),
        asking: if listed { Asking::AskBefore } else { Asking::NotListed },
        consequence: proposal.flow.consequence,
        envelope: if proposal.flow.is_meant() { Envelope::Inside } else { Envelope::Outside },
        uncleared: proposal.flow.uncleared.clone(),
        workspace: proposal.run.workspace.clone(),
        containment: contained(proposal.containment),
        signals: proposal.signals.clone(),
        connection: None,
        secret_for: None,
        now: proposal.at,
    }
}

fn argument(facts: &ArgumentFacts, scope: EffectScope) -> Argument {
    // Tools that stay inside the workspace do so by construction; for all others a path is somewhere else.
    let inside = matches!(scope, EffectScope::WorkspaceRead | EffectScope::WorkspaceWrite);
    Argument {
        name: facts.name.clone(),
        sink: facts.sink,
        provenance: facts.provenance,
        label: facts.label.clone(),
        value: facts.value.clone(),
        location: (facts.sink == Some(SinkKind::Path) && inside).then_some(Location::InsideWorkspace),
        source: facts.source.clone(),
        sentence: facts.sentence.clone(),
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
