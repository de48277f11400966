//! Everything a run can ask its driver to do.
//!
//! Actions are values: the machine returns them, the driver journals them together with the input that caused them, and only then
//! carries them out. Replay compares them byte for byte, so nothing in here may depend on anything but the inputs.

use palyra_budget::MicroUsd;
use palyra_common::{
    ApprovalEvidence, ApprovalId, ApprovalSubject, Digest, Label, Risk, RunLifecycleHookPhase, RunLifecyclePhase,
    StableErrorEnvelope, StatusDetail, TerminationReason, Timestamp, ToolAttestation,
};
use serde::{Deserialize, Serialize};

use super::input::Offer;
use crate::canvas::CanvasUpdate;
use crate::own_tools::Plan;

/// One thing for the driver to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Ask the model for its next turn.
    CallModel {
        /// Which turn.
        turn: u32,
        /// Which attempt at it, from 1.
        attempt: u32,
        /// How long to wait first.
        delay_ms: u64,
        /// Digest of the messages that the model is to see.
        context: Digest,
        /// Tools that it is told about because the run came to need them, beside those that every run is offered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
    },
    /// Stop listening to the model.
    StopModel {
        /// Which turn.
        turn: u32,
    },
    /// Ask whether a call may happen.
    Decide {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: serde_json::Value,
    },
    /// Put a question to a person.
    RequestApproval(Box<ApprovalRequest>),
    /// Let the run spend so much more than its budgets allow.
    GrantBudget {
        /// How much.
        micro_usd: MicroUsd,
    },
    /// Take a question back.
    WithdrawApproval {
        /// Which one.
        approval_id: ApprovalId,
    },
    /// Run a tool: the intent that precedes every effect.
    Execute {
        /// The call.
        call_id: String,
        /// The same after a crash, so that a tool can recognise its own earlier attempt.
        effect_id: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: serde_json::Value,
    },
    /// Hand a call back to the client, whose tool it is. Nothing is carried out here.
    HandBack {
        /// The call.
        call_id: String,
        /// The tool as the client knows it.
        tool: String,
        /// Its arguments.
        arguments: serde_json::Value,
    },
    /// Stop a tool; its outcome is still awaited.
    StopTool {
        /// The call.
        call_id: String,
    },
    /// A call is over without having been made: it was refused, given up or cannot be made as it is. Nothing is carried out; people are told.
    NotRun {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Why, for people.
        error: Box<StableErrorEnvelope>,
        /// How far that may be trusted: a hook's reason may quote anybody.
        #[serde(default = "Label::system")]
        label: Label,
    },
    /// What executed a finished call.
    Attest(ToolAttestation),
    /// The planner's list of steps changed.
    UpdatePlan(Box<Plan>),
    /// A finished call drew on a canvas.
    DrawCanvas(Box<CanvasUpdate>),
    /// Summarise the oldest items of the context.
    Compact {
        /// How many of the oldest items.
        replaces: u32,
        /// Estimated tokens of the context now.
        tokens: u32,
    },
    /// The run's phase changed.
    Status(StatusChange),
    /// Ask hooks, one after the other.
    RunHooks {
        /// The same when they are asked again after a crash.
        occurrence_id: String,
        /// Where in the run.
        phase: RunLifecycleHookPhase,
        /// The call it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The bindings, in the order in which they are asked.
        hooks: Vec<String>,
    },
    /// Ask a judge whether the run's objective is met.
    Judge {
        /// Which time it is asked; the same when it is asked again after a crash.
        judgement: u32,
    },
    /// Stop asking the judge: nobody wants its verdict any more.
    StopJudge {
        /// Which time.
        judgement: u32,
    },
    /// Put these files back to what they were before the run.
    TakeBack {
        /// Which time in this run; the same when it is begun again after a crash.
        number: u32,
        /// The files.
        paths: Vec<String>,
    },
    /// Stop asking hooks: nobody wants their answer any more.
    StopHooks {
        /// The occurrence.
        occurrence_id: String,
    },
}

/// A question put to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The approval.
    pub approval_id: ApprovalId,
    /// Whose run asks.
    pub owner: String,
    /// The call it is about.
    pub call_id: String,
    /// What kind of thing is asked.
    pub subject: ApprovalSubject,
    /// How much harm it could do.
    pub risk: Risk,
    /// Why it is asked.
    pub question: Question,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: serde_json::Value,
    /// One line for a person.
    pub summary: String,
    /// Why, in plain words.
    pub reasons: Vec<String>,
    /// The arguments that steer the effect and were not chosen by a trusted person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ApprovalEvidence>,
    /// What could be agreed to for longer than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// Digest of everything that is shown: the answer holds for exactly this.
    pub binding: Digest,
    /// When it lapses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

palyra_common::runtime_contract_enum! {
    /// What a person is asked about a call.
    pub enum Question("approval_question") {
        /// May it happen?
        MayItRun = "may_it_run",
        /// The daemon died while it ran and nobody knows whether it happened. Run it again?
        RunAgain = "run_again",
        /// A budget is spent. May the run spend more?
        SpendMore = "spend_more",
        /// A hook wants a person to agree. May the run begin, or its answer be delivered?
        MayGoOn = "may_go_on",
        /// A hook proposes another text. Is it delivered instead of the answer?
        ReplaceAnswer = "replace_answer",
        /// The run changed files that take effect later. Do they stay?
        AcceptChanges = "accept_changes",
    }
}

/// A change of phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusChange {
    /// The new phase.
    pub phase: RunLifecyclePhase,
    /// Why the run ended, in a terminal phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<TerminationReason>,
    /// What exactly ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<StatusDetail>,
    /// The answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Label of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
}
