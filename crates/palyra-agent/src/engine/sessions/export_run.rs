//! One run of an exported session, folded from its tape.

use palyra_common::{
    ApprovalDecision, ApprovalId, ApprovalScope, RunId, RunLifecyclePhase, RunMode, StableErrorEnvelope, StatusDetail,
    TerminationReason, Timestamp, ToolVerdict,
};
use palyra_journal::StoredRecord;
use palyra_tools::FileChange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::AgentError;
use crate::hooks::HookResult;
use crate::machine::{Action, Input};
use crate::projections::{ApprovalRow, RunRow};
use crate::tape::{Note, TapeEntry};

/// What was asked and answered before the session was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExchangeExport {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What was asked.
    pub prompt: String,
    /// What was answered.
    pub answer: String,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunExport {
    /// The run.
    pub run_id: RunId,
    /// Whose run it is.
    pub owner: String,
    /// What was asked.
    pub prompt: String,
    /// What people wrote while it was at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// What it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Where it stands.
    pub phase: RunLifecyclePhase,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<TerminationReason>,
    /// What exactly ended it, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<StatusDetail>,
    /// The model that planned.
    pub model: String,
    /// How untrusted results were treated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// The directory it worked in.
    pub workspace: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What it wanted to do, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallExport>,
    /// What people were asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalExport>,
    /// Files it changed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Who took its changes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
}

/// One proposed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallExport {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ToolVerdict>,
    /// Why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The policies that determined it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// What came of it; absent if it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcomeExport>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallOutcomeExport {
    /// What it gave.
    pub content: String,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
    /// Who executed it.
    pub executor: String,
    /// When it was over.
    pub at: Timestamp,
}

/// One question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalExport {
    /// The question.
    pub approval_id: ApprovalId,
    /// The call it is about.
    pub call_id: String,
    /// What was asked, in one line.
    pub summary: String,
    /// Why.
    pub reason: String,
    /// When.
    pub requested_at: Timestamp,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ApprovalDecision>,
    /// How far it reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ApprovalScope>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was answered or taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

impl RunExport {
    pub(super) fn of(
        row: RunRow,
        prompt: String,
        approvals: Vec<ApprovalRow>,
        records: &[StoredRecord],
    ) -> Result<Self, AgentError> {
        let mut run = Self {
            run_id: row.run_id,
            owner: row.owner,
            prompt,
            messages: Vec::new(),
            answer: row.answer,
            phase: row.phase,
            reason: row.reason,
            detail: row.detail,
            model: row.model,
            mode: None,
            workspace: row.workspace,
            created_at: row.created_at,
            ended_at: row.ended_at,
            calls: Vec::new(),
            approvals: approvals.into_iter().map(ApprovalExport::of).collect(),
            changes: Vec::new(),
            undone_by: None,
        };
        for record in records {
            run.read(TapeEntry::from_record(record)?, record.at);
        }
        Ok(run)
    }

    fn read(&mut self, entry: TapeEntry, at: Timestamp) {
        match entry {
            TapeEntry::Input(Input::Accepted(spec)) => self.mode = Some(spec.mode),
            TapeEntry::Input(Input::UserMessage { text, .. }) => self.messages.push(text),
            // A decision that a restart asked for again is about a call that is there already.
            TapeEntry::Action(Action::Decide { call_id, tool, arguments }) if self.call(&call_id).is_none() => {
                self.calls.push(CallExport {
                    call_id,
                    tool,
                    arguments,
                    verdict: None,
                    reasons: Vec::new(),
                    policies: Vec::new(),
                    outcome: None,
                });
            }
            TapeEntry::Input(Input::Decided(decided)) => {
                if let Some(call) = self.call(&decided.call_id) {
                    call.verdict = Some(decided.verdict);
                    call.reasons = decided.reasons;
                    call.policies = decided.policies;
                }
            }
            // Why a call did not run, or a person was asked, may be a matter of hooks.
            TapeEntry::Input(Input::HooksAnswered(answered)) => {
                if let Some(call) = answered.call_id.as_ref().and_then(|call_id| self.call(call_id)) {
                    call.reasons.extend(answered.results.iter().filter_map(HookResult::in_words));
                }
            }
            TapeEntry::Input(Input::ToolFinished { call_id, result, .. }) => {
                self.changes.extend(result.changes);
                if let Some(call) = self.call(&call_id) {
                    call.outcome = Some(CallOutcomeExport {
                        content: result.content,
                        error: result.error,
                        executor: result.attestation.executor,
                        at,
                    });
                }
            }
            TapeEntry::Note(Note::Undone { by, remaining, .. }) if remaining.is_empty() => self.undone_by = Some(by),
            _ => {}
        }
    }

    fn call(&mut self, call_id: &str) -> Option<&mut CallExport> {
        self.calls.iter_mut().find(|call| call.call_id == call_id)
    }
}

impl ApprovalExport {
    fn of(row: ApprovalRow) -> Self {
        Self {
            approval_id: row.approval_id,
            call_id: row.call_id,
            summary: row.summary,
            reason: row.reason,
            requested_at: row.requested_at,
            decision: row.decision,
            scope: row.scope,
            by: row.by,
            closed_at: row.closed_at,
        }
    }
}
