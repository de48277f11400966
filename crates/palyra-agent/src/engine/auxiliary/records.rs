//! The records of auxiliary tasks.
//!
//! They stand in the task's session, beside the tape of the run that it belongs to, if it belongs to one. What a task was given is on the tape already, or
//! in the hands of whoever asked, so only its digest is kept; what it gave is kept unless the run records it itself.

use palyra_common::{
    AuxiliaryTaskId, AuxiliaryTaskKind, AuxiliaryTaskState, Digest, Label, RunId, SessionId, StableErrorEnvelope,
};
use palyra_models::{Answering, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine::Cost;

/// Kinds of records about auxiliary tasks.
pub(crate) mod kind {
    pub(crate) const PENDING: &str = "auxiliary.pending";
    pub(crate) const RUNNING: &str = "auxiliary.running";
    pub(crate) const SUCCEEDED: &str = "auxiliary.succeeded";
    pub(crate) const FAILED: &str = "auxiliary.failed";
    pub(crate) const CANCELLED: &str = "auxiliary.cancelled";
}

/// Payload of an `auxiliary.pending` record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskPending {
    pub(crate) task_id: AuxiliaryTaskId,
    pub(crate) session_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<RunId>,
    pub(crate) owner: String,
    pub(crate) agent: String,
    pub(crate) kind: AuxiliaryTaskKind,
    /// Join of the labels of everything that it was given; what it gives has it too.
    pub(crate) label: Label,
    pub(crate) budget_tokens: u32,
    /// Whom it asks if nobody else answers.
    pub(crate) provider: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) model: String,
    /// Digest of the input.
    pub(crate) input: Digest,
}

/// Payload of an `auxiliary.running` record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskRunning {
    pub(crate) task_id: AuxiliaryTaskId,
}

/// Payload of the record of a task's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskEnded {
    pub(crate) task_id: AuxiliaryTaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<RunId>,
    pub(crate) agent: String,
    pub(crate) state: AuxiliaryTaskState,
    /// Digest of the output's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<Digest>,
    /// The output itself, unless it is recorded elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<StableErrorEnvelope>,
    #[serde(flatten)]
    pub(crate) bill: TaskBill,
}

/// What a task's calls came to, all together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskBill {
    /// How many calls were made.
    #[serde(default)]
    pub(crate) calls: u32,
    /// Who answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answering: Option<Answering>,
    #[serde(default)]
    pub(crate) usage: Usage,
    #[serde(default)]
    pub(crate) cost: Cost,
}

/// The run that a task's calls are made and paid for: a task that belongs to none is one of its own.
pub(crate) fn payer_run(run_id: Option<RunId>, task_id: AuxiliaryTaskId) -> RunId {
    run_id.unwrap_or_else(|| RunId::from_u128(task_id.to_u128()))
}

impl TaskEnded {
    /// The kind of its record.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.state {
            AuxiliaryTaskState::Succeeded => kind::SUCCEEDED,
            AuxiliaryTaskState::Failed => kind::FAILED,
            AuxiliaryTaskState::Cancelled | AuxiliaryTaskState::Pending | AuxiliaryTaskState::Running => {
                kind::CANCELLED
            }
        }
    }
}
