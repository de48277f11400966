//! The tape: a run's records, one to one with the events that surfaces follow.
//!
//! Each record is an input that was applied, an action that followed from it, or a note about it. Its payload is the JSON of a
//! [`TapeEntry`]; its kind is a name for queries and people. [`body`] is the one place where records become events.

use palyra_common::{
    A2uiUpdate, JournalEvent, ModelToken, RunId, RunLifecyclePhase, RunStatus, RunStreamBody, RunStreamEvent,
    StatusDetail, Timestamp, ToolApprovalRequest, ToolApprovalResponse, ToolDecision, ToolProposal, ToolResult,
};
use palyra_journal::StoredRecord;
use palyra_tools::{FileChange, RemainingFile};
use serde::{Deserialize, Serialize};

use crate::engine::{UnavailableSource, WithheldInstructions};
use crate::error::AgentError;
use crate::hooks::HooksAnswered;
use crate::machine::{Action, Input, MAY_HAVE_HAPPENED, Question};
use crate::started_with::Actor;

/// One record of a tape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TapeEntry {
    /// Something happened to the run.
    Input(Input),
    /// The run asked for something.
    Action(Action),
    /// Something was noted about the run.
    Note(Note),
}

/// Something noted about a run without being an input of its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Its file changes were undone, or some of them.
    Undone {
        /// Who asked for it.
        by: String,
        /// The changes that undoing made.
        changes: Vec<FileChange>,
        /// The files that were left as they were; none if the run is undone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remaining: Vec<RemainingFile>,
    },
    /// Its tape could not be fed to the machine again after a restart.
    Unrecoverable {
        /// Why.
        message: String,
    },
    /// Hooks were asked after it was over.
    HooksAnswered(HooksAnswered),
    /// Configured sources of tools offered nothing when it began or was resumed.
    ToolsUnavailable {
        /// Which, and why.
        sources: Vec<UnavailableSource>,
    },
    /// Files of the workspace that would be instructions are not followed in this run.
    InstructionsWithheld {
        /// Which, and why.
        files: Vec<WithheldInstructions>,
    },
    /// All files of the workspace are taken for somebody else's, so that reading one of them taints the run.
    WorkspaceForeign {
        /// Why, to follow the word "it".
        why: String,
    },
    /// The input that follows was given with another credential than the one that started the run.
    Steered(Actor),
}

/// A borrowed [`TapeEntry`] with the same JSON.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryRef<'a> {
    /// See [`TapeEntry::Input`].
    Input(&'a Input),
    /// See [`TapeEntry::Action`].
    Action(&'a Action),
    /// See [`TapeEntry::Note`].
    Note(&'a Note),
}

impl TapeEntry {
    /// This entry, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> EntryRef<'_> {
        match self {
            Self::Input(input) => EntryRef::Input(input),
            Self::Action(action) => EntryRef::Action(action),
            Self::Note(note) => EntryRef::Note(note),
        }
    }

    /// Reads a record's payload.
    ///
    /// # Errors
    /// When the payload is not a tape entry.
    pub fn from_record(record: &StoredRecord) -> Result<Self, AgentError> {
        serde_json::from_slice(&record.payload).map_err(|error| AgentError::BadTape {
            seq: record.run_seq.unwrap_or_default(),
            message: format!("the record does not read as a tape entry: {error}"),
        })
    }
}

impl EntryRef<'_> {
    /// The bytes that are stored, and that replay compares.
    ///
    /// # Errors
    /// Never for the types of this crate.
    pub fn payload(self) -> Result<Vec<u8>, AgentError> {
        serde_json::to_vec(&self).map_err(|error| AgentError::Internal(error.to_string()))
    }

    /// The record's kind.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Input(input) => match input {
                Input::Accepted(_) => kind::RUN_ACCEPTED,
                Input::Started => kind::RUN_STARTED,
                Input::ModelDelta { .. } => "model.delta",
                Input::ModelTurnFinished(_) => kind::MODEL_TURN_FINISHED,
                Input::ModelFailed(_) => kind::MODEL_FAILED,
                Input::BudgetRefused { .. } => kind::BUDGET_REFUSED,
                Input::Decided(_) => "tool.decided",
                Input::ApprovalDecided { .. } => kind::APPROVAL_DECIDED,
                Input::ToolBegun { .. } => "tool.started",
                Input::ToolFinished { .. } => kind::TOOL_FINISHED,
                Input::Compacted { .. } => "context.compacted",
                Input::CompactionReverted { .. } => "context.compaction_reverted",
                Input::UserMessage { .. } => kind::RUN_USER_MESSAGE,
                Input::EnvelopeEdited { .. } => kind::RUN_ENVELOPE_EDITED,
                Input::Cancel { .. } => "run.cancel",
                Input::Pause { .. } => "run.pause",
                Input::Resume { .. } => kind::RUN_RESUME,
                Input::Tick => "run.tick",
                Input::ClockAdjusted { .. } => "run.clock_adjusted",
                Input::Recovered => "run.recovered",
                Input::Restored => "run.restored",
                Input::HooksBound { .. } => "hooks.bound",
                Input::HooksAnswered(_) => "hooks.answered",
                Input::Judged(_) => "objective.judged",
                Input::TookBack(_) => "changes.taken_back",
            },
            Self::Action(action) => match action {
                Action::CallModel { .. } => kind::MODEL_CALL,
                Action::StopModel { .. } => "model.stop",
                Action::Decide { .. } => "tool.proposed",
                Action::RequestApproval(_) => kind::APPROVAL_REQUESTED,
                Action::WithdrawApproval { .. } => kind::APPROVAL_WITHDRAWN,
                Action::GrantBudget { .. } => kind::BUDGET_GRANT,
                Action::Execute { .. } => "tool.intent",
                Action::HandBack { .. } => kind::TOOL_HANDED_BACK,
                Action::StopTool { .. } => "tool.stop",
                Action::UpdatePlan(_) => "plan.updated",
                Action::NotRun { .. } => "tool.not_run",
                Action::Attest(_) => "tool.attested",
                Action::DrawCanvas(_) => "canvas.drawn",
                Action::Compact { .. } => kind::CONTEXT_COMPACT,
                Action::Status(_) => kind::RUN_STATUS,
                Action::RunHooks { .. } => kind::HOOKS_RUN,
                Action::StopHooks { .. } => "hooks.stop",
                Action::Judge { .. } => "objective.judge",
                Action::StopJudge { .. } => "objective.stop",
                Action::TakeBack { .. } => "changes.take_back",
            },
            Self::Note(note) => match note {
                Note::Undone { remaining, .. } if remaining.is_empty() => kind::RUN_UNDONE,
                Note::Undone { .. } => kind::RUN_PARTLY_UNDONE,
                Note::Unrecoverable { .. } => kind::RUN_UNRECOVERABLE,
                Note::HooksAnswered(_) => kind::HOOKS_NOTED,
                Note::ToolsUnavailable { .. } => "tools.unavailable",
                Note::InstructionsWithheld { .. } => "instructions.withheld",
                Note::WorkspaceForeign { .. } => "workspace.foreign",
                Note::Steered(_) => kind::RUN_STEERED,
            },
        }
    }
}

/// Detail code of a run that could not be taken up again.
pub(crate) const UNRECOVERABLE: &str = "run_unrecoverable";

/// Kinds that records are looked for by.
pub(crate) mod kind {
    pub(crate) const RUN_ACCEPTED: &str = "run.accepted";
    pub(crate) const RUN_STARTED: &str = "run.started";
    pub(crate) const RUN_STATUS: &str = "run.status";
    pub(crate) const RUN_RESUME: &str = "run.resume";
    pub(crate) const RUN_STEERED: &str = "run.steered";
    pub(crate) const RUN_USER_MESSAGE: &str = "run.user_message";
    pub(crate) const RUN_ENVELOPE_EDITED: &str = "run.envelope_edited";
    pub(crate) const RUN_UNDONE: &str = "run.undone";
    pub(crate) const RUN_PARTLY_UNDONE: &str = "run.partly_undone";
    pub(crate) const RUN_UNRECOVERABLE: &str = "run.unrecoverable";
    pub(crate) const MODEL_CALL: &str = "model.call";
    pub(crate) const CONTEXT_COMPACT: &str = "context.compact";
    pub(crate) const BUDGET_GRANT: &str = "budget.grant";
    pub(crate) const BUDGET_REFUSED: &str = "budget.refused";
    pub(crate) const MODEL_FAILED: &str = "model.failed";
    pub(crate) const MODEL_TURN_FINISHED: &str = "model.turn_finished";
    pub(crate) const TOOL_HANDED_BACK: &str = "tool.handed_back";
    pub(crate) const TOOL_FINISHED: &str = "tool.finished";
    pub(crate) const HOOKS_RUN: &str = "hooks.run";
    pub(crate) const HOOKS_NOTED: &str = "hooks.noted";
    pub(crate) const APPROVAL_REQUESTED: &str = "approval.requested";
    pub(crate) const APPROVAL_DECIDED: &str = "approval.decided";
    pub(crate) const APPROVAL_REVOKED: &str = "approval.revoked";
    pub(crate) const APPROVAL_WITHDRAWN: &str = "approval.withdrawn";
}

/// The event of an entry.
#[must_use]
pub fn event(run_id: RunId, seq: u64, at: Timestamp, entry: EntryRef<'_>) -> RunStreamEvent {
    RunStreamEvent { run_id, seq, at, body: body(entry) }
}

/// The event of a stored record.
///
/// # Errors
/// When the payload is not a tape entry.
pub fn event_of_record(run_id: RunId, record: &StoredRecord) -> Result<RunStreamEvent, AgentError> {
    let entry = TapeEntry::from_record(record)?;
    Ok(event(run_id, record.run_seq.unwrap_or_default(), record.at, entry.as_ref()))
}

fn body(entry: EntryRef<'_>) -> RunStreamBody {
    match entry {
        EntryRef::Input(Input::Accepted(_)) => RunStreamBody::Status(RunStatus::entered(RunLifecyclePhase::Queued)),
        EntryRef::Input(Input::Started) => RunStreamBody::Status(RunStatus::entered(RunLifecyclePhase::Running)),
        EntryRef::Input(Input::ModelDelta { turn, text }) => {
            RunStreamBody::ModelToken(ModelToken { turn: *turn, text: text.clone() })
        }
        EntryRef::Input(Input::Decided(decided)) => RunStreamBody::ToolDecision(ToolDecision {
            call_id: decided.call_id.clone(),
            verdict: decided.verdict,
            reasons: decided.reasons.clone(),
            policies: decided.policies.clone(),
        }),
        EntryRef::Input(Input::ApprovalDecided { approval_id, decision, scope, by, .. }) => {
            RunStreamBody::ToolApprovalResponse(ToolApprovalResponse {
                approval_id: *approval_id,
                decision: *decision,
                scope: *scope,
                by: by.clone(),
            })
        }
        EntryRef::Input(Input::ToolFinished { call_id, tool, result }) => RunStreamBody::ToolResult(ToolResult {
            call_id: call_id.clone(),
            tool: tool.clone(),
            ok: !result.failed(),
            content: result.content.clone(),
            truncated: result.truncated,
            artifact: result.artifact,
            error: result.error.clone(),
            label: result.label.clone(),
        }),
        EntryRef::Action(Action::Decide { call_id, tool, arguments }) => RunStreamBody::ToolProposal(ToolProposal {
            call_id: call_id.clone(),
            tool: tool.clone(),
            arguments: arguments.clone(),
        }),
        EntryRef::Action(Action::RequestApproval(request)) => {
            let summary = match request.question {
                Question::MayItRun
                | Question::SpendMore
                | Question::MayGoOn
                | Question::ReplaceAnswer
                | Question::AcceptChanges => request.summary.clone(),
                Question::RunAgain if request.summary.starts_with(MAY_HAVE_HAPPENED) => request.summary.clone(),
                // Older versions did not say it.
                Question::RunAgain => format!("{MAY_HAVE_HAPPENED}{}", request.summary),
            };
            RunStreamBody::ToolApprovalRequest(ToolApprovalRequest {
                approval_id: request.approval_id,
                call_id: Some(request.call_id.clone()),
                subject: request.subject,
                risk: request.risk,
                summary,
                tool: Some(request.tool.clone()),
                arguments: Some(request.arguments.clone()),
                reason: request.reasons.join("; "),
                evidence: request.evidence.clone(),
                offer: request.offer.as_ref().map(|offer| offer.pattern.sentence()),
            })
        }
        EntryRef::Action(Action::NotRun { call_id, tool, error, label }) => RunStreamBody::ToolResult(ToolResult {
            call_id: call_id.clone(),
            tool: tool.clone(),
            ok: false,
            content: error.message.clone(),
            truncated: false,
            artifact: None,
            error: Some((**error).clone()),
            label: label.clone(),
        }),
        EntryRef::Action(Action::Attest(attestation)) => RunStreamBody::ToolAttestation(attestation.clone()),
        EntryRef::Action(Action::DrawCanvas(update)) => {
            RunStreamBody::A2uiUpdate(A2uiUpdate { payload: serde_json::to_value(update).unwrap_or_default() })
        }
        EntryRef::Action(Action::Status(change)) => RunStreamBody::Status(RunStatus {
            phase: change.phase,
            reason: change.reason,
            detail: change.detail.clone(),
            progress: None,
        }),
        EntryRef::Note(Note::Unrecoverable { message }) => RunStreamBody::Status(RunStatus {
            phase: RunLifecyclePhase::Failed,
            reason: None,
            detail: Some(StatusDetail { code: UNRECOVERABLE.to_owned(), message: message.clone() }),
            progress: None,
        }),
        other => RunStreamBody::JournalEvent(JournalEvent {
            kind: other.kind().to_owned(),
            payload: serde_json::to_value(other).unwrap_or_default(),
        }),
    }
}
