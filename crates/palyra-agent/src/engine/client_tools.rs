//! Tools of the caller: calls are handed back, results come from outside.
//!
//! A client that speaks of tools of its own (as OpenAI-style clients do) has its calls handed back to it. They are decided without asking anybody: a
//! call that is handed back goes to the very principal who asked for the run and receives its answer anyway, and nothing of Palyra's world is read or written by it.
//! What the client then does is the client's affair. The one thing that is looked at are secrets, as in an answer: they do not go out. What the client delivers
//! is untrusted like everything from outside, whoever brings it, because nobody knows where the client's tool took it from.

use palyra_common::{
    Confidentiality, Digest, ErrorCategory, Integrity, Label, LimitsUsed, Risk, RunId, StableErrorEnvelope,
    ToolAttestation, ToolVerdict,
};
use palyra_flow::SourceNaming;
use palyra_tools::{Concurrency, Repeatability};
use serde_json::Value;

use super::{Engine, EngineOptions};
use crate::canonical::canonical_json;
use crate::error::AgentError;
use crate::machine::{Action, CLIENT_TOOLS_PENDING, CallFacts, CallResult, Decided, Input, Machine};
use crate::projections::RunRow;
use crate::spec::ClientTool;
use crate::started_with::Actor;
use crate::tape::{TapeEntry, kind};

/// Most tools of one client.
const MAX_TOOLS: usize = 128;
/// Most characters of a name; what OpenAI-style clients may use.
const MAX_NAME: usize = 64;
/// Most bytes of a tool's description and schema; all of it stands in every request to the model.
const MAX_BYTES: usize = 64 << 10;

/// A call that was handed back.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCall {
    /// The call, unique within the run.
    pub call_id: String,
    /// The tool as the client knows it.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

/// What came of a call that was handed back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientResult {
    /// The call.
    pub call_id: String,
    /// What the tool gave.
    pub content: String,
    /// Whether it failed.
    pub is_error: bool,
}

impl Engine {
    /// The calls that a run handed back to its client and that have no result yet.
    ///
    /// # Errors
    /// When there is no such run or its tape cannot be read.
    pub async fn pending_client_calls(&self, run_id: RunId) -> Result<Vec<ClientCall>, AgentError> {
        self.run(run_id).await?;
        let mut pending: Vec<ClientCall> = Vec::new();
        for record in self.whole_tape(run_id).await? {
            match record.kind.as_ref() {
                kind::TOOL_HANDED_BACK | kind::TOOL_FINISHED | kind::RUN_STATUS => {}
                // The round is over, whatever was left of it.
                kind::MODEL_CALL | kind::CONTEXT_COMPACT => {
                    pending.clear();
                    continue;
                }
                _ => continue,
            }
            match TapeEntry::from_record(&record)? {
                TapeEntry::Action(Action::HandBack { call_id, tool, arguments }) => {
                    pending.push(ClientCall { call_id, name: tool, arguments });
                }
                TapeEntry::Input(Input::ToolFinished { call_id, .. }) => pending.retain(|call| call.call_id != call_id),
                TapeEntry::Action(Action::Status(change)) if change.phase.is_terminal() => pending.clear(),
                _ => {}
            }
        }
        Ok(pending)
    }

    /// Records the results of calls that were handed back, all or none of them. The run goes on when it has all.
    ///
    /// # Errors
    /// When there is no such run, or one of the calls does not wait for a result.
    pub async fn deliver_client_results(
        &self,
        run_id: RunId,
        results: Vec<ClientResult>,
        actor: &Actor,
    ) -> Result<RunRow, AgentError> {
        let row = self.run(run_id).await?;
        let pending = self.pending_client_calls(run_id).await?;
        let mut inputs = Vec::new();
        for result in results {
            let Some(call) = pending.iter().find(|call| call.call_id == result.call_id) else {
                let why = "one of these calls is not waiting for a result";
                return Err(AgentError::WrongPhase { run_id, phase: row.phase, why });
            };
            inputs.push(self.delivered(call, result, &actor.by));
        }
        if !inputs.is_empty() {
            self.send_all(run_id, inputs, Some(actor), Vec::new()).await?;
        }
        self.run(run_id).await
    }

    fn delivered(&self, call: &ClientCall, delivered: ClientResult, by: &str) -> Input {
        let tool = format!("{}{}", ClientTool::PREFIX, call.name);
        let failed = || {
            let message = format!("the client's tool `{}` failed", call.name);
            StableErrorEnvelope::new("client_tool_failed", ErrorCategory::Dependency, message)
        };
        let label = Label::new(Integrity::Untrusted, Confidentiality::Private).from_source(tool.clone());
        let arguments = canonical_json(&call.arguments);
        let parts = [tool.as_bytes(), arguments.as_bytes(), delivered.content.as_bytes()];
        let attestation = ToolAttestation {
            call_id: call.call_id.clone(),
            execution_sha256: Digest::of_parts(&parts),
            executor: format!("client {by}"),
            tier: None,
            fallback_reasons: Vec::new(),
            limits_used: LimitsUsed { output_bytes: Some(delivered.content.len() as u64), ..LimitsUsed::default() },
            timed_out: false,
        };
        let text = CallResult::of_text(delivered.content, label, attestation);
        let mut result = CallResult { error: delivered.is_error.then(failed), ..text };
        self.shared.options.safety.before_prompt(&mut result);
        Input::ToolFinished { call_id: call.call_id.clone(), tool, result: Box::new(result) }
    }
}

/// Whether a run waits for results of its client.
pub(super) fn is_pending(run: &RunRow) -> bool {
    run.detail.as_ref().is_some_and(|detail| detail.code == CLIENT_TOOLS_PENDING)
}

/// Decides on a call of a client's tool; see the first lines of this file for why nobody is asked.
pub(super) fn decide(
    options: &EngineOptions,
    machine: &Machine,
    call_id: &str,
    tool: &ClientTool,
    arguments: &Value,
) -> Decided {
    let secret = options.safety.holds_secret(&canonical_json(arguments));
    let (verdict, reason, policy) = if secret {
        (ToolVerdict::Deny, "the arguments seem to hold a secret", "safety.export")
    } else {
        (ToolVerdict::Permit, "the call is handed back to the client whose tool it is", "engine.client_tool")
    };
    Decided {
        call_id: call_id.to_owned(),
        verdict,
        reasons: vec![reason.to_owned()],
        told: Vec::new(),
        policies: vec![policy.to_owned()],
        requests: Vec::new(),
        facts: CallFacts {
            containment: palyra_policy::Containment::Reaching,
            concurrency: Concurrency::Shared,
            repeatability: Repeatability::Repeatable,
            risk: Risk::Low,
            summary: format!("hand `{}` back to the client", tool.name),
            resource: format!("client:{}", tool.name),
            destination: None,
            confirmed_first: false,
            evidence: Vec::new(),
            offer: None,
            source: SourceNaming::ChosenOtherwise,
            mandate: None,
            seen: machine.seen(),
        },
        invalid: None,
    }
}

/// Refuses tools that cannot be offered to a model.
pub(super) fn check(tools: &[ClientTool]) -> Result<(), AgentError> {
    let wrong = |tool: &ClientTool, why| {
        Err(AgentError::ClientToolInvalid { name: tool.name.chars().take(MAX_NAME).collect(), why })
    };
    for (index, tool) in tools.iter().enumerate() {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if index >= MAX_TOOLS {
            return wrong(tool, "there are more than 128");
        }
        if tool.name.is_empty() || tool.name.len() > MAX_NAME || !tool.name.bytes().all(fits) {
            return wrong(tool, "its name is invalid");
        }
        if tools.iter().take(index).any(|other| other.name == tool.name) {
            return wrong(tool, "its name is used twice");
        }
        if !tool.input_schema.is_object() {
            return wrong(tool, "its schema is not a JSON object");
        }
        if tool.description.len() + tool.input_schema.to_string().len() > MAX_BYTES {
            return wrong(tool, "its description and schema are larger than 64 KiB");
        }
    }
    Ok(())
}
