//! The states of a run: one variant per public phase, each holding only what is valid then.

use std::collections::BTreeMap;

use palyra_budget::MicroUsd;
use palyra_common::{
    ApprovalId, Digest, InputMode, Label, RunLifecyclePhase, StatusDetail, TerminationReason, Timestamp,
};
use palyra_flow::Reference;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::Question;
use super::changes::TakingBack;
use super::hook_questions::HookQuestion;
use super::hooks::HookWait;
use super::input::{CallFacts, CallResult};
use super::objective::JudgeWait;
use super::screening::{Reviewing, Screening};
use crate::context::Item;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Accepted, not begun.
    Queued,
    /// At work.
    Running(Activity),
    /// Nothing runs and at least one call waits for a person.
    WaitingForApproval(ToolRound),
    /// A person is asked whether it may spend more than its budgets allow.
    AskingForMoney(MoneyQuestion),
    /// A person is asked because a hook wants it.
    AskingForHook(Box<HookQuestion>),
    /// Held; what was under way is kept.
    Paused(Activity),
    /// Over, with an answer.
    Completed(Ending),
    /// Over, by a limit or an error.
    Failed(Ending),
    /// Over, by a person.
    Aborted(Ending),
    /// Over, by lapse of time.
    Expired(Ending),
}

impl Phase {
    /// The public name of this phase.
    pub(super) fn lifecycle(&self) -> RunLifecyclePhase {
        match self {
            Self::Queued => RunLifecyclePhase::Queued,
            Self::Running(_) => RunLifecyclePhase::Running,
            Self::WaitingForApproval(_) | Self::AskingForMoney(_) | Self::AskingForHook(_) => {
                RunLifecyclePhase::WaitingForApproval
            }
            Self::Paused(_) => RunLifecyclePhase::Paused,
            Self::Completed(_) => RunLifecyclePhase::Completed,
            Self::Failed(_) => RunLifecyclePhase::Failed,
            Self::Aborted(_) => RunLifecyclePhase::Aborted,
            Self::Expired(_) => RunLifecyclePhase::Expired,
        }
    }
}

/// A question about money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoneyQuestion {
    /// The question.
    pub approval_id: ApprovalId,
    /// How much more.
    pub amount: MicroUsd,
    /// When it lapses.
    pub expires_at: Option<Timestamp>,
    /// How the run ended before, and ends again if the answer is no.
    pub ending: Ending,
}

/// What a run at work is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Activity {
    /// Waiting for the model.
    Model {
        /// Which attempt at the present turn, from 1.
        attempt: u32,
    },
    /// Waiting for a summary of the oldest `replaces` items.
    Compacting {
        /// How many items.
        replaces: u32,
    },
    /// Working through the calls of a turn.
    Tools(ToolRound),
    /// Waiting for what hooks say about a step of the run.
    Hooks(HookWait),
    /// Waiting for a verdict on the answer.
    Judging(Box<JudgeWait>),
    /// About to end as soon as what nobody accepted is taken back.
    TakingBack(Box<TakingBack>),
    /// All calls of the turn that are left were handed back to the client; only ever held.
    HandedBack(ToolRound),
    /// About to end as soon as the calls under way have reported.
    Stopping {
        /// The calls.
        round: ToolRound,
        /// How it will end.
        ending: Ending,
        /// The terminal phase it ends in.
        phase: RunLifecyclePhase,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// Why.
    pub reason: TerminationReason,
    /// What exactly.
    pub detail: Option<StatusDetail>,
    /// The answer, if there is one, with its label.
    pub answer: Option<(String, Label)>,
    /// Whether it is known that the answer does not do what was asked.
    #[serde(default, skip_serializing_if = "AnswerVerdict::is_open")]
    pub verdict: AnswerVerdict,
}

/// What is known about an answer, beyond its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerVerdict {
    /// Nothing, or that it is good: it is for the person to judge.
    #[default]
    Open,
    /// Whoever gave it, or a judge, says that the task was not done.
    NotDone,
}

impl AnswerVerdict {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
    fn is_open(&self) -> bool {
        *self == Self::Open
    }
}

impl Ending {
    /// The phase in which a run with this answer ends.
    pub(super) fn delivered_in(&self) -> RunLifecyclePhase {
        match self.verdict {
            AnswerVerdict::Open => RunLifecyclePhase::Completed,
            AnswerVerdict::NotDone => RunLifecyclePhase::Failed,
        }
    }

    /// An ending without an answer.
    pub(super) fn without_answer(reason: TerminationReason, detail: Option<StatusDetail>) -> Self {
        Self { reason, detail, answer: None, verdict: AnswerVerdict::Open }
    }
}

/// The calls of one model turn, in the model's order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolRound {
    /// The calls.
    pub calls: Vec<Call>,
}

impl ToolRound {
    pub(super) fn call_mut(&mut self, call_id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.call_id == call_id)
    }

    pub(super) fn is_executing(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Executing { .. }))
    }

    pub(super) fn awaits_client(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::HandedBack { .. }))
    }

    pub(super) fn awaits_person(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::AwaitingApproval { .. }))
    }
}

/// One proposed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Unique within the run.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, references to variables resolved.
    pub arguments: Value,
    /// What was taken from variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// How far it got.
    pub state: CallState,
}

/// How far a call got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallState {
    /// Not decided yet.
    Proposed,
    /// A person is asked.
    AwaitingApproval {
        /// The question.
        approval_id: ApprovalId,
        /// What is asked.
        question: Question,
        /// When it lapses.
        expires_at: Option<Timestamp>,
        /// What a refusal of it is remembered by.
        proposal: Digest,
        /// About the call.
        facts: CallFacts,
        /// Times it was begun before.
        attempts: u32,
    },
    /// Permitted, not begun.
    Ready {
        /// About the call.
        facts: CallFacts,
        /// Times it was begun before.
        attempts: u32,
    },
    /// Begun; the intent is on the journal.
    Executing {
        /// About the call.
        facts: CallFacts,
        /// Times it was begun, this one included.
        attempts: u32,
        /// Whether it reported that its effect begins.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reported_begin: bool,
    },
    /// Handed back to the client, whose tool it is; its result is awaited.
    HandedBack {
        /// About the call.
        facts: CallFacts,
    },
    /// Let pass by policy; hooks look at it.
    Screening(Box<Screening>),
    /// Finished; hooks look at what came of it.
    Reviewing(Box<Reviewing>),
    /// Over.
    Done(CallOutcome),
}

/// What the model is told about a call that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallOutcome {
    /// It ran.
    Finished(Box<CallResult>),
    /// It did not run, or nobody knows.
    NotRun {
        /// Stable code.
        code: String,
        /// What the model reads.
        message: String,
        /// How far that may be trusted.
        #[serde(default = "Label::system")]
        label: Label,
    },
}

impl CallOutcome {
    /// What went wrong, in a few words of Palyra's own.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Finished(result) => {
                result.failure.clone().or_else(|| result.error.as_ref().map(|error| error.code.clone()))
            }
            Self::NotRun { code, .. } => Some(code.clone()),
        }
    }
}

/// What a run carries through all its phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Model turns begun.
    pub turns: u32,
    /// Tool calls proposed.
    pub tool_calls: u32,
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// Approvals asked.
    pub approvals: u32,
    /// Working time up to the last change of phase, in milliseconds.
    pub active_ms: u64,
}

/// Messages a person sent while the run was at work, not yet shown to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct QueuedMessage {
    /// The text.
    pub text: String,
    /// When it takes effect.
    pub mode: InputMode,
}

/// How often each (call, result) pair was seen; see `looping.rs`.
pub(super) type SeenCalls = BTreeMap<Digest, u32>;

/// The growing context of the run.
pub(super) type Transcript = Vec<Item>;
