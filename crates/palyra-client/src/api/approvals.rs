//! Approvals: questions put to a person, and the answers.

use palyra_common::{
    ApprovalDecision, ApprovalEvidence, ApprovalId, ApprovalScope, ApprovalSubject, Risk, RunId, SessionId, Timestamp,
    runtime_contract_enum,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::RunView;

runtime_contract_enum! {
    /// Which approvals a list holds.
    pub enum ApprovalState("approval_state") {
        /// Nobody has answered yet.
        Pending = "pending",
        /// Answered, timed out or failed.
        Decided = "decided",
        /// Both.
        All = "all",
    }
}

/// Which approvals to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListApprovalsParams {
    /// Only those of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Pending ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ApprovalState>,
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Only approvals that were asked after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ApprovalId>,
}

/// A page of approvals, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListApprovalsResponse {
    /// Oldest first: that is the order in which a person should answer.
    pub approvals: Vec<ApprovalView>,
    /// Pass as `after` for the next page; absent on the last one. A page may be shorter than its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<ApprovalId>,
}

/// One question, and its answer when there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// The approval.
    pub approval_id: ApprovalId,
    /// The run that waits for it; absent when a client asks for something of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The session of that run, or the one that the client named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The client that asks in words of its own, which nobody has checked; absent when Palyra itself asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// The tool call it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What kind of thing is asked.
    pub subject: ApprovalSubject,
    /// How much harm it could do.
    pub risk: Risk,
    /// One line that says exactly what would happen.
    pub summary: String,
    /// Why a person is asked.
    pub reason: String,
    /// The tool, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments exactly as they would be used, or what the client tells about its question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// The values that steer the effect and were chosen by nobody the person trusts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ApprovalEvidence>,
    /// What could be agreed to for longer than once, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// When it lapses unanswered, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The answer; absent while pending and when the question was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ApprovalAnswer>,
    /// When the run took the question back, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_at: Option<Timestamp>,
}

/// How an approval was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAnswer {
    /// The decision.
    pub decision: ApprovalDecision,
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// Who decided.
    pub by: String,
    /// Where they decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// How to look at one question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetApprovalParams {
    /// Waits this many seconds for an answer, at most 50; not at all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 50))]
    pub wait_seconds: Option<u32>,
}

/// A question of a client's own for its person. Palyra carries it and the answer; nothing is permitted by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestApprovalParams {
    /// What kind of thing is asked.
    pub subject: ApprovalSubject,
    /// One line that says exactly what would happen.
    #[schemars(length(min = 1, max = 240))]
    pub summary: String,
    /// Why a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub reason: Option<String>,
    /// How much harm it could do, as the client sees it; medium when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// More about it, such as the arguments of a call; at most 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    /// The caller's session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Seconds after which it lapses, at most a week; it waits for ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub expires_in_seconds: Option<u64>,
}

/// What an answer came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecideApprovalResponse {
    /// The question with its answer.
    pub approval: ApprovalView,
    /// The run that asked, as it stands now; absent when a client asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunView>,
}

/// A person's answer. Only `allow` and `deny` can be given; `timeout` and `error` are for the daemon to record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideApprovalParams {
    /// The decision.
    pub decision: ApprovalDecision,
    /// How far it reaches: this call, or calls like it in the session or for a time.
    pub scope: ApprovalScope,
    /// How long a timeboxed answer holds; an hour if nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1440))]
    pub minutes: Option<u32>,
    /// Why, in at most 500 characters. The model of the run is told why a call was denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
}

/// Which agreed patterns to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListPatternsParams {
    /// Also those that were taken back or have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// Agreed patterns, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListPatternsResponse {
    /// Newest first.
    pub patterns: Vec<PatternView>,
}

/// What a person agreed to for longer than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternView {
    /// The approval it came from.
    pub approval_id: ApprovalId,
    /// The session it was agreed to in.
    pub session_id: SessionId,
    /// The tool.
    pub tool: String,
    /// What it covers, in words.
    pub sentence: String,
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// When it ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Who agreed.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// When it was taken back, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}
