//! Deciding on proposals: what the run has read, put before the decider.
//!
//! The index over what was read is derived from the machine and only ever grows, so each decision adds what is new and looks the rest up.

use std::collections::BTreeSet;
use std::sync::Arc;

use palyra_common::config::MandateClass;
use palyra_common::{
    ApprovalEvidence, Consequence, Label, Provenance, Risk, SinkKind, StableErrorEnvelope, Timestamp,
    ToStableError as _, ToolVerdict,
};
use palyra_flow::{
    Check, FlowFacts, Mandate, Material, Planner, Proposed, SourceNaming, admit, assess, can_be_judged, holds,
};
use palyra_policy::{ObservedCall, Signals, narrowest_pattern};
use palyra_tools::{
    CallResource, Concurrency, Containment, Registry, Repeatability, Tool, ToolDeclaration, ToolError, Workspace,
};
use serde_json::Value;

use super::{EngineOptions, client_tools, question, strict};
use crate::decide::{CONFIRM_MANDATES, Proposal, Verdict, contained, observed};
use crate::machine::{CallFacts, Decided, Machine, Offer};
use crate::own_tools::{INTENT, IntentInput};
use crate::projections;

/// The index of one run.
pub(super) struct Flow {
    workspace: Arc<Workspace>,
    material: Material,
    begun: bool,
    trusted: usize,
    readings: usize,
}

impl Flow {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, material: Material::default(), begun: false, trusted: 0, readings: 0 }
    }

    /// Decides on a proposal. Whatever goes wrong is a denial.
    pub(super) async fn decide(
        &mut self,
        options: &EngineOptions,
        machine: &Machine,
        at: Timestamp,
        call_id: &str,
        tool: &str,
        arguments: &Value,
    ) -> Decided {
        if !machine.spec().lets_use(tool) {
            return beyond_the_agent(call_id, &machine.spec().agent, tool);
        }
        if let Some(client) = machine.spec().client_tool(tool) {
            let errors = palyra_tools::check_schema(&client.input_schema, arguments);
            if !errors.is_empty() && machine.blind_arguments(call_id).is_none() {
                let error = ToolError::InvalidArguments { tool: tool.to_owned(), errors };
                return denied(call_id, &error.to_stable());
            }
            return client_tools::decide(options, machine, call_id, client, arguments);
        }
        let registry = registry_with(options, tool).await;
        let found = match registry.get(tool) {
            Ok(found) => found,
            Err(error) => return denied(call_id, &error.to_stable()),
        };
        let declaration = found.declaration();
        let references = machine.call(call_id).map(|call| call.references.as_slice()).unwrap_or_default();
        // In a strict run nothing is decided by what variables hold.
        let given = arguments;
        let blind = machine.blind_arguments(call_id);
        if blind.is_some()
            && let Some(argument) = strict::steered_blindly(declaration, references)
        {
            return blindly_steered(call_id, argument);
        }
        let arguments = blind.as_ref().unwrap_or(arguments);
        let schema = if blind.is_some() { Schema::Unchecked } else { Schema::Checked };
        // INVARIANT: nobody is asked about a call that could not be made anyway, as far as the planner could know that.
        let resource = match validated(&registry, found, tool, arguments, schema, &self.workspace).await {
            Ok(resource) => resource,
            Err(error) => return denied(call_id, &error.to_stable()),
        };
        let containment = found.containment(arguments, &self.workspace).await;
        let declaration = found.declaration();
        self.absorb(machine);
        let seen = machine.seen();
        let mut classification = declaration.classification();
        classification.consequence = match containment {
            Containment::Contained => Consequence::Contained,
            Containment::Reaches(_) => found.consequence(arguments),
        };
        let destination = declaration.destination(&resource);
        let proposed = Proposed {
            tool,
            server: declaration.server.as_deref(),
            destination: destination.as_ref(),
            classification: &classification,
            schema: &declaration.input_schema,
            arguments,
            references,
        };
        let mut flow = assess(proposed, &self.material, machine.readings(), &seen, machine.mandates());
        name_who_chose(&mut flow, machine);
        // A person sees what was really given, and decides about that.
        let mut shown = Vec::new();
        if blind.is_some() {
            shown = evidence(&assess(
                Proposed { arguments: given, ..proposed },
                &self.material,
                machine.readings(),
                &seen,
                machine.mandates(),
            ));
            strict::may_hold_anything(&mut flow, machine, references);
        }
        let run = machine.spec();
        let signals = Signals { at_source: comes_from_suspicious_text(&flow, machine), ..machine.signals().clone() };
        let states = states(&registry, tool, arguments);
        let proposal = Proposal {
            run,
            call_id,
            tool: declaration,
            arguments,
            resource: &resource,
            flow: &flow,
            states: &states,
            signals: &signals,
            containment: &containment,
            at,
        };
        let stated = if tool == INTENT { self.stated(&registry, arguments, machine.planner()) } else { None };
        let mut verdict = match stated {
            Some(refused) => refused,
            None => match options.decider.decide(proposal).await {
                Ok(verdict) => verdict,
                Err(error) => refusal(error.to_string(), Vec::new()),
            },
        };
        // Why it would be permitted is no reason to ask.
        let permitted = (verdict.verdict == ToolVerdict::Permit).then(|| std::mem::take(&mut verdict.reasons));
        options.safety.before_execution(declaration, arguments, &flow, &mut verdict);
        if let Some(reasons) = permitted.filter(|_| verdict.verdict == ToolVerdict::Permit) {
            verdict.reasons = reasons;
        }
        if verdict.verdict == ToolVerdict::NeedsApproval {
            verdict.reasons = question::phrased(verdict.reasons, &verdict.policies, &flow, containment.reason());
        }
        let confirmed_first = verdict.policies.iter().any(|policy| policy == CONFIRM_MANDATES);
        let offer = match verdict.verdict {
            // Where no policy asks, agreeing for longer would answer nothing; and whoever wants to be asked about what a run means to do does not agree to it in advance.
            ToolVerdict::NeedsApproval
                if blind.is_none() && !verdict.asking.is_empty() && tool != INTENT && !confirmed_first =>
            {
                let call = observed(&flow, declaration, &machine.spec().workspace, &resource, arguments);
                offer(options, machine, call, verdict.asking).await
            }
            ToolVerdict::NeedsApproval | ToolVerdict::Permit | ToolVerdict::Deny => None,
        };
        shown.extend(evidence(&flow));
        Decided {
            call_id: call_id.to_owned(),
            verdict: verdict.verdict,
            reasons: verdict.reasons,
            told: verdict.told,
            policies: verdict.policies,
            requests: verdict.requests,
            facts: CallFacts {
                concurrency: declaration.concurrency,
                repeatability: declaration.repeatability,
                risk: risk(declaration.risk, &flow, &signals),
                summary: found.summarise(given),
                resource: resource.to_string(),
                destination,
                confirmed_first,
                evidence: shown,
                offer,
                source: flow.source,
                mandate: flow.mandate,
                containment: contained(&containment),
                seen,
            },
            invalid: None,
        }
    }

    /// Why the mandates that the planner states do not count, if they do not.
    fn stated(&self, registry: &Registry, arguments: &Value, planner: Planner) -> Option<Verdict> {
        if planner != Planner::Fresh && holds(Check::MandatesBeforeReading) {
            return Some(too_late());
        }
        let input: IntentInput = serde_json::from_value(arguments.clone()).ok()?;
        let refused: Vec<String> = input.effects.iter().filter_map(|mandate| self.refused(registry, mandate)).collect();
        (!refused.is_empty()).then(|| refusal(refused.join("; "), vec!["engine.mandate_refused".to_owned()]))
    }

    fn refused(&self, registry: &Registry, mandate: &Mandate) -> Option<String> {
        let found = registry.get(&mandate.tool).ok().map(|tool| tool.declaration());
        let classification = found.map(ToolDeclaration::classification);
        let tool = found.zip(classification.as_ref());
        let tool = tool.map(|(declaration, classification)| (classification, &*declaration.input_schema));
        admit(mandate, tool, &self.material).map(|refused| format!("{}: {}", refused.tool, refused.reason))
    }

    /// Adds what the run has read since the last decision.
    fn absorb(&mut self, machine: &Machine) {
        let spec = machine.spec();
        if !self.begun {
            self.begun = true;
            // What somebody outside wrote is among the readings.
            if spec.from.is_none() {
                self.material.trust(&spec.prompt);
            }
            if let Some(instructions) = spec.instructions() {
                self.material.trust(instructions);
            }
            for exchange in &spec.history {
                match &exchange.prompt_label {
                    None => self.material.trust(&exchange.prompt),
                    Some(_) => self.material.distrust(&exchange.prompt, "an earlier message of an outside sender"),
                }
                self.material.distrust(&exchange.answer, "an earlier answer of this session");
            }
            for item in spec.project.iter().chain(&spec.attachments) {
                self.material.distrust(&item.text, &item.source);
            }
        }
        for text in machine.trusted().iter().skip(self.trusted) {
            self.material.trust(text);
        }
        self.trusted = machine.trusted().len();
        for reading in machine.readings().iter().skip(self.readings) {
            self.material.read(reading);
        }
        self.readings = machine.readings().len();
    }
}

/// Of what kind the mandates are that a call states.
fn states(registry: &Registry, tool: &str, arguments: &Value) -> BTreeSet<MandateClass> {
    if tool != INTENT {
        return BTreeSet::new();
    }
    let stated = serde_json::from_value::<IntentInput>(arguments.clone()).map(|input| input.effects);
    let of = |mandate: &Mandate| registry.get(&mandate.tool).ok().map(|tool| classes(mandate, tool.declaration()));
    stated.unwrap_or_default().iter().filter_map(of).flatten().collect()
}

/// What a mandate for this tool would let a run do.
fn classes(mandate: &Mandate, tool: &ToolDeclaration) -> BTreeSet<MandateClass> {
    let acts = tool.consequence == Consequence::Consequential;
    let decides = |kind: SinkKind| acts && tool.sinks.iter().any(|sink| sink.kind == kind);
    let mut classes = BTreeSet::new();
    if decides(SinkKind::Amount) {
        classes.insert(MandateClass::Paying);
    }
    // Whoever is given data of another place hears of it by a mere query, too.
    if decides(SinkKind::Destination) || !mandate.from.is_empty() {
        classes.insert(MandateClass::Outward);
    }
    classes
}

/// The tools there are; the source of one that is missing is asked first.
pub(super) async fn registry_with(options: &EngineOptions, tool: &str) -> Arc<Registry> {
    let registry = options.registry.current();
    if registry.get(tool).is_ok() {
        return registry;
    }
    options.discovery.find(tool).await;
    options.registry.current()
}

/// Whether arguments have to have the shape that their tool declares. References that stand in the place of values do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schema {
    Checked,
    Unchecked,
}

/// Whether a call could be made at all: there is such a tool, its arguments have the shape that it declares, and the tool itself sees nothing wrong with them.
/// Gives the resource that it would touch.
async fn validated(
    registry: &Arc<Registry>,
    tool: &Arc<dyn Tool>,
    name: &str,
    arguments: &Value,
    schema: Schema,
    workspace: &Arc<Workspace>,
) -> Result<CallResource, ToolError> {
    let (registry, name) = (Arc::clone(registry), name.to_owned());
    let (tool, arguments, workspace) = (Arc::clone(tool), arguments.clone(), Arc::clone(workspace));
    // Looks at the file system, and schemas of others may take a while, too.
    let check = move || {
        if !can_be_judged(&arguments) {
            let message = "the arguments hold too many values, or nest too deeply, for each to be judged";
            return Err(ToolError::argument(&name, "arguments", "too_large", message));
        }
        if schema == Schema::Checked {
            registry.validate(&name, &arguments)?;
        }
        tool.check(&arguments, &workspace)?;
        tool.resource(&arguments, &workspace)
    };
    tokio::task::spawn_blocking(check).await.unwrap_or_else(|error| Err(ToolError::Internal(error.to_string())))
}

/// Without a language model nothing was chosen by one.
fn name_who_chose(flow: &mut FlowFacts, machine: &Machine) {
    if machine.spec().model.provider != palyra_models::OFFLINE {
        return;
    }
    for argument in flow.arguments.iter_mut().filter(|argument| argument.provenance == Provenance::Invented) {
        argument.source.get_or_insert_with(|| "the offline planner".to_owned());
    }
}

/// What a person has to look at: every value that steers the effect and was chosen by nobody they trust.
fn evidence(flow: &FlowFacts) -> Vec<ApprovalEvidence> {
    let steers = |sink: &SinkKind| !matches!(sink, SinkKind::Content | SinkKind::Amount);
    flow.arguments
        .iter()
        .filter(|argument| argument.provenance > Provenance::ToolTrusted)
        .filter_map(|argument| {
            Some(ApprovalEvidence {
                argument: argument.name.clone(),
                sink: argument.sink.filter(steers)?,
                value: argument.value.clone()?,
                provenance: argument.provenance,
                source: argument.source.clone(),
                sentence: argument.sentence.clone(),
            })
        })
        .collect()
}

/// The narrowest pattern that covers this call and those that were approved in this session before, and answers the policies that ask. None if there is no such pattern.
async fn offer(
    options: &EngineOptions,
    machine: &Machine,
    call: ObservedCall,
    asking: BTreeSet<String>,
) -> Option<Offer> {
    let (session, tool) = (machine.spec().session_id, call.tool.clone());
    let read = options
        .journal
        .read(move |reader| projections::approved_calls(reader.connection(), session, &tool).map_err(Into::into));
    let earlier = match read.await {
        Ok(earlier) => earlier,
        Err(error) => {
            tracing::warn!(%error, "earlier approvals cannot be read; the pattern covers this call alone");
            Vec::new()
        }
    };
    let observed = call.arguments.clone();
    let earlier = earlier.into_iter().map(|offer| ObservedCall {
        tool: call.tool.clone(),
        arguments: offer.observed,
        workspace: offer.pattern.workspace,
        method: offer.pattern.method,
        empty: offer.pattern.empty,
        destination: offer.pattern.destination,
        // What is cleared is what this question is about.
        uncleared: BTreeSet::new(),
    });
    let calls: Vec<ObservedCall> = std::iter::once(call.clone()).chain(earlier).collect();
    let pattern = narrowest_pattern(&calls, asking).ok()?;
    Some(Offer { pattern, observed })
}

/// Whether a value that steers the call was found in a text that tries to give orders.
fn comes_from_suspicious_text(flow: &FlowFacts, machine: &Machine) -> bool {
    let suspicious: Vec<String> = machine
        .readings()
        .iter()
        .filter(|reading| !reading.suspicions.is_empty())
        .map(palyra_flow::Reading::described)
        .collect();
    !suspicious.is_empty()
        && evidence(flow).iter().any(|shown| shown.source.as_ref().is_some_and(|source| suspicious.contains(source)))
}

/// The tool's own risk, raised by a credential or command that nobody trusted chose, and by a value out of a text that tries to give orders.
fn risk(declared: Risk, flow: &FlowFacts, signals: &Signals) -> Risk {
    let raised = evidence(flow).iter().any(|shown| {
        let opens = matches!(shown.sink, SinkKind::Credential | SinkKind::Command);
        opens && shown.provenance == Provenance::Untrusted
    });
    if raised || signals.at_source { declared.max(Risk::Critical) } else { declared }
}

fn too_late() -> Verdict {
    let told = "effects can only be stated before the first reading; go on, a person is asked where needed";
    let mut verdict = refusal(
        "the run tried to state effects after its first reading".to_owned(),
        vec!["engine.intent_too_late".to_owned()],
    );
    verdict.told = vec![told.to_owned()];
    verdict
}

fn refusal(reason: String, policies: Vec<String>) -> Verdict {
    Verdict {
        verdict: ToolVerdict::Deny,
        reasons: vec![reason],
        told: Vec::new(),
        policies,
        asking: BTreeSet::new(),
        requests: Vec::new(),
    }
}

/// A proposal of a tool that the run's agent does not have.
fn beyond_the_agent(call_id: &str, agent: &str, tool: &str) -> Decided {
    Decided {
        told: vec![format!("this agent does not have {tool}; do with the tools you were given")],
        ..out_of_hand(call_id, format!("the agent `{agent}` does not have {tool}"), "engine.agent_tools".to_owned())
    }
}

/// A proposal of a strict run in which an untrusted text would choose what a tool touches.
fn blindly_steered(call_id: &str, argument: &str) -> Decided {
    Decided {
        told: vec![strict::told(argument)],
        ..out_of_hand(
            call_id,
            format!("`{argument}` was taken from a variable in a strict run"),
            "engine.strict_reference".to_owned(),
        )
    }
}

/// A proposal that names no tool, or arguments with which it cannot be made.
fn denied(call_id: &str, error: &StableErrorEnvelope) -> Decided {
    Decided {
        invalid: Some(Box::new(error.clone())),
        ..out_of_hand(call_id, error.to_string(), format!("engine.{}", error.code))
    }
}

/// A denial without a decision of the policies. The facts are the cautious ones; nothing runs by them.
fn out_of_hand(call_id: &str, reason: String, policy: String) -> Decided {
    Decided {
        call_id: call_id.to_owned(),
        verdict: ToolVerdict::Deny,
        reasons: vec![reason],
        told: Vec::new(),
        policies: vec![policy],
        requests: Vec::new(),
        facts: CallFacts {
            concurrency: Concurrency::Exclusive,
            repeatability: Repeatability::NonRepeatable,
            risk: Risk::High,
            summary: String::new(),
            resource: String::new(),
            destination: None,
            confirmed_first: false,
            evidence: Vec::new(),
            offer: None,
            source: SourceNaming::ChosenOtherwise,
            mandate: None,
            containment: palyra_policy::Containment::Reaching,
            seen: Label::system(),
        },
        invalid: None,
    }
}
