//! The event stream of a run: what every surface follows and what the tape holds.
//!
//! On the wire an event is flat, with exactly one body key:
//! `{"run_id":"01…","seq":3,"at":1794700000123,"model_token":{"turn":1,"text":"hi"}}`. `seq` starts at 1 and has no
//! gaps, so a client resumes from any `seq` it saw; numbering is the engine's work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ApprovalDecision, ApprovalId, ApprovalScope, ApprovalSubject, Digest, Label, Provenance, Risk, RunId,
    RunLifecyclePhase, SandboxTier, SinkKind, StableErrorEnvelope, TerminationReason, Timestamp, ToolVerdict,
};

/// One event of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStreamEvent {
    /// The run it belongs to.
    pub run_id: RunId,
    /// Its place in the run's stream, without gaps.
    pub seq: u64,
    /// When it was journaled.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub body: RunStreamBody,
}

/// What happened, under one key of the event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStreamBody {
    /// The run entered a phase.
    Status(RunStatus),
    /// The model wrote some text.
    ModelToken(ModelToken),
    /// The model wants to call a tool.
    ToolProposal(ToolProposal),
    /// It was decided whether it may.
    ToolDecision(ToolDecision),
    /// A person is asked.
    ToolApprovalRequest(ToolApprovalRequest),
    /// The person answered.
    ToolApprovalResponse(ToolApprovalResponse),
    /// The tool gave its outcome.
    ToolResult(ToolResult),
    /// How the tool was executed.
    ToolAttestation(ToolAttestation),
    /// A user interface document changed.
    A2uiUpdate(A2uiUpdate),
    /// Any other record of the run's journal.
    JournalEvent(JournalEvent),
}

impl RunStreamBody {
    /// The body's key on the wire.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Status(_) => "status",
            Self::ModelToken(_) => "model_token",
            Self::ToolProposal(_) => "tool_proposal",
            Self::ToolDecision(_) => "tool_decision",
            Self::ToolApprovalRequest(_) => "tool_approval_request",
            Self::ToolApprovalResponse(_) => "tool_approval_response",
            Self::ToolResult(_) => "tool_result",
            Self::ToolAttestation(_) => "tool_attestation",
            Self::A2uiUpdate(_) => "a2ui_update",
            Self::JournalEvent(_) => "journal_event",
        }
    }
}

/// A run entered a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStatus {
    /// The phase it is in now.
    pub phase: RunLifecyclePhase,
    /// Why it ended, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<TerminationReason>,
    /// More about it, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<StatusDetail>,
    /// How a call under way gets on. Such an event is not on the tape: it repeats the position of the event before it, goes to those
    /// alone who follow and ask for it, and may be missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<CallProgress>,
}

impl RunStatus {
    /// A phase with nothing more to say.
    #[must_use]
    pub const fn entered(phase: RunLifecyclePhase) -> Self {
        Self { phase, reason: None, detail: None, progress: None }
    }
}

/// The id under which progress tells about the model call of the turn, which is no call of a tool: that it failed and is made again.
pub const MODEL_CALL: &str = "model";

/// How a call that is under way gets on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallProgress {
    /// The call it is about: a tool call, or [`MODEL_CALL`].
    pub call_id: String,
    /// How much is done, in percent, if that can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What is going on, in one line. May come from outside, so it is untrusted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// More of what the call prints. Pieces may be missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// A stable code with its sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusDetail {
    /// Stable snake_case code.
    pub code: String,
    /// The sentence for a person.
    pub message: String,
}

/// Some text of the model, in the order it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelToken {
    /// The model turn it belongs to, from 1.
    pub turn: u32,
    /// The text.
    pub text: String,
}

/// A call the model wants to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolProposal {
    /// The call's id, unique in its run.
    pub call_id: String,
    /// The tool's full name.
    pub tool: String,
    /// The arguments as proposed.
    pub arguments: Value,
}

/// What was decided about a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDecision {
    /// The call it is about.
    pub call_id: String,
    /// The decision.
    pub verdict: ToolVerdict,
    /// Why, in sentences for a person and for the model.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// The policies that determined it.
    #[serde(default)]
    pub policies: Vec<String>,
}

/// A question put to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolApprovalRequest {
    /// The question's id.
    pub approval_id: ApprovalId,
    /// The call that waits for the answer, if it is a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What kind of thing is asked about.
    pub subject: ApprovalSubject,
    /// How much harm it could do.
    pub risk: Risk,
    /// The question in one line.
    pub summary: String,
    /// The tool's full name, if it is a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The exact arguments, if it is a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Why a person has to be asked.
    pub reason: String,
    /// The values that steer the effect and were chosen by nobody the person trusts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ApprovalEvidence>,
    /// What could be agreed to for longer than once, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
}

/// What a person is shown about one argument: the value, where it comes from and the sentence it stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalEvidence {
    /// The argument; a link found inside content is `name#1`, `name#2`, ….
    pub argument: String,
    /// What it decides.
    pub sink: SinkKind,
    /// The value.
    pub value: String,
    /// Where it comes from.
    pub provenance: Provenance,
    /// Where it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The sentence it was found in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolApprovalResponse {
    /// The question's id.
    pub approval_id: ApprovalId,
    /// The answer.
    pub decision: ApprovalDecision,
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// The principal who answered.
    pub by: String,
}

/// What a tool gave back, as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call it belongs to.
    pub call_id: String,
    /// The tool's full name.
    pub tool: String,
    /// Whether the call succeeded.
    pub ok: bool,
    /// The text given to the model.
    pub content: String,
    /// Whether `content` is shorter than the whole output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where the whole output is kept, when it is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Digest>,
    /// What went wrong, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
    /// How far the content may be trusted and shown.
    pub label: Label,
}

/// How a call was executed: evidence that outlives the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolAttestation {
    /// The call it is about.
    pub call_id: String,
    /// Digest of tool, arguments and output.
    pub execution_sha256: Digest,
    /// Who executed it, such as `builtin` or a worker's name.
    pub executor: String,
    /// The isolation it ran under; absent for code of the daemon itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<SandboxTier>,
    /// Why it ran in a weaker tier than the one asked for; empty unless it did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_reasons: Vec<String>,
    /// What it consumed.
    pub limits_used: LimitsUsed,
    /// Whether it was stopped by its time limit.
    pub timed_out: bool,
}

/// What an execution consumed, as far as its executor measures it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsUsed {
    /// Elapsed time in milliseconds.
    pub wall_ms: u64,
    /// Processor time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Largest memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// WebAssembly fuel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// Bytes of output before truncation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

/// A user interface document or a patch to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct A2uiUpdate {
    /// The document or patch; its own contract checks it.
    pub payload: Value,
}

/// A record of the run's journal that has no body of its own here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalEvent {
    /// The record's kind.
    pub kind: String,
    /// The record's payload.
    pub payload: Value,
}

impl RunStreamEvent {
    /// How a call gets on, if that is all this event says. It is then not on the tape.
    #[must_use]
    pub const fn progress(&self) -> Option<&CallProgress> {
        match &self.body {
            RunStreamBody::Status(status) => status.progress.as_ref(),
            _ => None,
        }
    }

    /// Whether this is the run's last event.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(&self.body, RunStreamBody::Status(status) if status.phase.is_terminal())
    }
}
