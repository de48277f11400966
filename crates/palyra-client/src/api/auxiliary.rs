//! Auxiliary tasks: small jobs for a model without tools, each with a fixed contract for what goes in and what comes out.

use palyra_budget::MicroUsd;
use palyra_common::{
    AuxiliaryTaskId, AuxiliaryTaskKind, AuxiliaryTaskState, Label, RunId, SessionId, StableErrorEnvelope, Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task, which is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAuxiliaryParams {
    /// What is to be done.
    pub kind: AuxiliaryTaskKind,
    /// What it is given, as the input contract of its kind describes it.
    pub input: Value,
    /// The session it belongs to; the caller's session for such tasks when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Another model than the one that fits its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Which tasks to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAuxiliaryParams {
    /// Of this session only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Of this run only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// In this state only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AuxiliaryTaskState>,
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Goes on from here: `next_before` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<AuxiliaryTaskId>,
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListAuxiliaryResponse {
    /// The newest first.
    pub tasks: Vec<AuxiliaryTaskView>,
    /// Pass as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<AuxiliaryTaskId>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuxiliaryTaskView {
    /// The task.
    pub task_id: AuxiliaryTaskId,
    /// Its session.
    pub session_id: SessionId,
    /// The run it belongs to, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Whose it is.
    pub owner: String,
    /// What was to be done.
    pub kind: AuxiliaryTaskKind,
    /// How far it has come.
    pub state: AuxiliaryTaskState,
    /// What it gave, as the output contract of its kind describes it. A run records it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// How far the output may be trusted: no further than anything that the task was given.
    pub label: Label,
    /// Why it gave nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
    /// Output tokens that one answer may have.
    pub budget_tokens: u32,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How often a model was asked.
    pub calls: u32,
    /// Who answered, as provider and model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Tokens of its requests.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// What it cost.
    pub micro_usd: MicroUsd,
}
