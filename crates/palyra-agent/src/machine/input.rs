//! Everything that can happen to a run.

use palyra_budget::MicroUsd;
use palyra_common::{
    ApprovalDecision, ApprovalEvidence, ApprovalId, ApprovalScope, AuxiliaryTaskId, DataOrigin, Digest, InputMode,
    Label, OutputClass, Risk, StableErrorEnvelope, Timestamp, ToolAttestation, ToolVerdict, runtime_contract_enum,
};
use palyra_flow::{Mandate, SourceNaming, Spent, Written};
use palyra_models::{Answering, Attempt, ReasoningBlock, StopReason, ToolCallRequest, Usage};
use palyra_policy::{Containment, Signals};
use palyra_tools::{Concurrency, FileChange, LaterChange, Repeatability};
use serde::{Deserialize, Serialize};

use super::changes::TookBack;
use super::objective::Judged;
use crate::canvas::CanvasDrawn;
use crate::context::Item;
use crate::hooks::{HookBindingRecord, HooksAnswered};
use crate::spec::{ModelChoice, RunSpec};

/// One thing that happened to a run. Inputs are journaled; feeding them again rebuilds the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The run was accepted; always the first input and never a later one.
    Accepted(Box<RunSpec>),
    /// A slot was free: begin.
    Started,
    /// The model wrote some more text.
    ModelDelta {
        /// Which turn is speaking.
        turn: u32,
        /// The new text.
        text: String,
    },
    /// The model finished its turn.
    ModelTurnFinished(ModelTurn),
    /// The model call failed.
    ModelFailed(ModelFailure),
    /// The model was not called, because it could have cost more than a budget leaves.
    BudgetRefused {
        /// Which turn.
        turn: u32,
        /// Which attempt at it.
        attempt: u32,
        /// Which budget, and what is left of it.
        error: Box<StableErrorEnvelope>,
        /// What tries at it cost that were given up before.
        #[serde(default, skip_serializing_if = "Cost::is_nothing")]
        cost: Cost,
    },
    /// The decision on a proposal.
    Decided(Box<Decided>),
    /// A person, or a timeout, answered an approval.
    ApprovalDecided {
        /// Which approval.
        approval_id: ApprovalId,
        /// The answer.
        decision: ApprovalDecision,
        /// How far it reaches.
        scope: ApprovalScope,
        /// When a timeboxed answer ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Who answered.
        by: String,
        /// Where they answered, such as `unix` or `http`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
        /// Why, if they said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The effect of a call is about to begin; until this is durable nothing of it has happened.
    ToolBegun {
        /// Which call.
        call_id: String,
    },
    /// A tool call ended, one way or another.
    ToolFinished {
        /// Which call.
        call_id: String,
        /// Its tool.
        tool: String,
        /// What came of it.
        result: Box<CallResult>,
    },
    /// Older material was summarised.
    Compacted {
        /// How many of the oldest items the summary stands for.
        replaces: u32,
        /// The summary.
        summary: String,
        /// How it was made: `model` or `extractive`.
        method: String,
        /// What there is to tell people about it; the machine does not look at it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<CompactionAccount>,
    },
    /// The newest summary was taken back.
    CompactionReverted {
        /// Who wanted it.
        by: String,
        /// What it stood for.
        originals: Vec<Item>,
    },
    /// A person wrote while the run was at work.
    UserMessage {
        /// The text.
        text: String,
        /// When it takes effect.
        mode: InputMode,
    },
    /// A person changed what the run is meant to do.
    EnvelopeEdited {
        /// Who.
        by: String,
        /// What is meant from now on as well.
        add: Vec<Mandate>,
        /// Tools that are no longer meant.
        remove: Vec<String>,
    },
    /// Somebody wants the run to stop for good.
    Cancel {
        /// Who.
        by: String,
        /// Why, if they said so.
        reason: Option<String>,
    },
    /// Somebody wants the run to hold.
    Pause {
        /// Who.
        by: String,
    },
    /// Somebody wants a held run to go on, or one that stopped because its model or its budget did.
    Resume {
        /// Who.
        by: String,
        /// How much it is to spend beyond its budgets, if a person agrees.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        over_budget: Option<MicroUsd>,
        /// The model that plans from now on, if it is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Box<ModelChoice>>,
    },
    /// The run has worked, or lain idle, for too long; see [`Machine::due`](super::Machine::due).
    Tick,
    /// The clock says another time than has passed; see [`ClockGap`]. Deadlines move with it, so that none of them is met by it.
    ClockAdjusted {
        /// By how much the clock is ahead of the time that counts, in milliseconds; less than zero if it is behind.
        by_ms: i64,
        /// Why.
        gap: ClockGap,
    },
    /// The daemon was restarted: whatever was under way is gone.
    Recovered,
    /// The state was restored from a backup: what happened since it was made is not known.
    Restored,
    /// These hooks count from now on, and no others.
    HooksBound {
        /// All bindings to phases of runs.
        bindings: Vec<HookBindingRecord>,
    },
    /// Hooks were asked.
    HooksAnswered(Box<HooksAnswered>),
    /// The judge of the run's objective was asked.
    Judged(Box<Judged>),
    /// The change set was taken back, as far as it could be.
    TookBack(Box<TookBack>),
}

/// A finished model turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelTurn {
    /// Which turn.
    pub turn: u32,
    /// Which attempt at it.
    pub attempt: u32,
    /// All text of the turn.
    pub text: String,
    /// What it wants to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRequest>,
    /// Tokens read and written.
    pub usage: Usage,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// From request to end of stream.
    pub duration_ms: u64,
    /// What it thought, to be given back to the same provider in later turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<ReasoningBlock>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering: Option<Answering>,
    /// Tries that failed before this answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// What was put right in the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Cost::is_nothing")]
    pub cost: Cost,
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// Which turn.
    pub turn: u32,
    /// Which attempt at it.
    pub attempt: u32,
    /// What went wrong.
    pub error: StableErrorEnvelope,
    /// What may help.
    pub remedy: Remedy,
    /// Who was asked, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering: Option<Answering>,
    /// Tries that failed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Tokens used all the same.
    #[serde(default, skip_serializing_if = "is_unused")]
    pub usage: Usage,
    /// What it cost all the same.
    #[serde(default, skip_serializing_if = "Cost::is_nothing")]
    pub cost: Cost,
}

fn is_unused(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// What a model call cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How much.
    pub micro_usd: MicroUsd,
    /// Whether the price or the usage was not known and the worst was assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The reservations that it closes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closes: Vec<String>,
    /// What a person has to know of it: soft limits that are reached, a worst case that was not the worst.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Of all that: what tries cost that failed before the last one, each at the model that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostTry>,
}

/// A try that failed and has to be paid for all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostTry {
    /// Who was asked.
    pub asked: Answering,
    /// Tokens it used, as far as they are known.
    pub usage: Usage,
    /// What it cost.
    pub micro_usd: MicroUsd,
    /// Whether the worst was assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.micro_usd = self.micro_usd.saturating_add(other.micro_usd);
        self.assumed |= other.assumed;
        self.closes.extend(other.closes);
        self.notices.extend(other.notices);
        self.lost.extend(other.lost);
        self
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What there is to tell about a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionAccount {
    /// About how many tokens the context had.
    pub tokens_before: u32,
    /// About how many it has now.
    pub tokens_after: u32,
    /// The auxiliary task that wrote it, or was to.
    pub task_id: AuxiliaryTaskId,
    /// Why no model wrote it, if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

runtime_contract_enum! {
    /// Why a clock says another time than has passed.
    pub enum ClockGap("clock_gap") {
        /// It was set while the daemon was running.
        ClockSet = "clock_set",
        /// The machine was suspended. A deadline is then met no earlier than [`AWAKE_GRACE`](super::AWAKE_GRACE) after it woke up.
        Suspended = "suspended",
        /// The daemon was not running, and nobody knows how far the clock went meanwhile.
        DaemonDown = "daemon_down",
    }
}

runtime_contract_enum! {
    /// What may help after a failed model call.
    pub enum Remedy("model_failure_remedy") {
        /// Trying again.
        Retry = "retry",
        /// A smaller context.
        Compact = "compact",
        /// Nothing Palyra can do by itself.
        Nothing = "nothing",
    }
}

/// The decision on one proposal, with the facts about the call that the machine schedules by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Which call.
    pub call_id: String,
    /// Permit, ask a person, or deny.
    pub verdict: ToolVerdict,
    /// Why, in plain words, for the person.
    pub reasons: Vec<String>,
    /// Why, for the model; empty means the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// The policies that determined it.
    pub policies: Vec<String>,
    /// What the policies were asked, so that past decisions can be simulated against another set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<serde_json::Value>,
    /// How the call may be scheduled and repeated, and how it reads to a person.
    pub facts: CallFacts,
    /// Why the call cannot be made as it is, whoever would permit it. Then the verdict is a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Box<StableErrorEnvelope>>,
}

/// What the tool's declaration says about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallFacts {
    /// Whether it may run beside others.
    pub concurrency: Concurrency,
    /// Whether it may run again after a crash.
    pub repeatability: Repeatability,
    /// How much harm it could do.
    pub risk: Risk,
    /// One line for a person.
    pub summary: String,
    /// The normalised thing it acts on.
    pub resource: String,
    /// Where the arguments go, if they leave the workspace. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<DataOrigin>,
    /// Label of everything the planner had seen when it proposed the call.
    #[serde(default = "Label::system")]
    pub seen: Label,
    /// Whether the user named the place that the call reads.
    #[serde(default)]
    pub source: SourceNaming,
    /// What it takes from the run's mandates when it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mandate: Option<Spent>,
    /// Whether the mandates that it states count only if a person agrees to the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed_first: bool,
    /// The arguments that steer the effect and were not chosen by a trusted person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ApprovalEvidence>,
    /// Whether the call was decided as one that reaches nothing outside the workspace and can be taken back. Then it is carried out so or not at all.
    #[serde(default, skip_serializing_if = "Containment::is_reaching")]
    pub containment: Containment,
    /// What a person could agree to once and for longer, if the call needs a person and any pattern covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
}

/// A pattern that covers a call, with what later patterns are made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The narrowest pattern that covers this call and those approved before.
    pub pattern: palyra_policy::Pattern,
    /// The arguments of this call.
    pub observed: Vec<palyra_policy::Argument>,
}

/// What came of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// What the model reads: output, or the error in words.
    pub content: String,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
    /// What went wrong in the work that the tool carried out, such as `exit code 1`. The tool did its part; `content` says the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether whoever carried it out went away in the middle, so that nobody knows how much was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broke_off: bool,
    /// How far the content may be trusted and shown.
    pub label: Label,
    /// The same result for programs, where its tool is classified field by field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// How its fields are classified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<OutputClass>,
    /// The outside server it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The place whose data it holds, or would hold if the call had worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<DataOrigin>,
    /// What scans found and cut out of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safety: Vec<String>,
    /// Signs that it tries to give orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicions: Vec<String>,
    /// The same for policies: which kinds of signs, and how much they weigh.
    #[serde(default, skip_serializing_if = "Signals::is_empty")]
    pub signals: Signals,
    /// What the planner is shown of it.
    #[serde(default, skip_serializing_if = "Showing::is_by_mode")]
    pub showing: Showing,
    /// Tools that it found; the model is told about them from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found_tools: Vec<String>,
    /// What it drew, if it drew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canvas: Option<CanvasDrawn>,
    /// Whether `content` is only a part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where the whole output is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Digest>,
    /// Files it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Of the files, those that take effect later: that a trusted tool executes, or that instruct agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<LaterChange>,
    /// The labels of what it wrote, if any file is worth less than other files of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrote: Option<Box<Written>>,
    /// What executed it, under which limits.
    pub attestation: ToolAttestation,
    /// How long it took.
    pub duration_ms: u64,
}

impl CallResult {
    /// Whether what was asked for was not done.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.error.is_some() || self.failure.is_some()
    }

    /// A result of text alone: nothing was found in it, drawn, kept elsewhere or changed. It took as long as its attestation says.
    #[must_use]
    pub fn of_text(content: String, label: Label, attestation: ToolAttestation) -> Self {
        Self {
            content,
            error: None,
            failure: None,
            broke_off: false,
            label,
            data: None,
            class: None,
            server: None,
            origin: None,
            safety: Vec::new(),
            suspicions: Vec::new(),
            signals: Signals::default(),
            showing: Showing::ByMode,
            found_tools: Vec::new(),
            canvas: None,
            truncated: false,
            artifact: None,
            changes: Vec::new(),
            later: Vec::new(),
            wrote: None,
            duration_ms: attestation.limits_used.wall_ms,
            attestation,
        }
    }
}

/// What the planner is shown of an untrusted result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Showing {
    /// As the run's mode says: as it is, or held in a variable with a preview.
    #[default]
    ByMode,
    /// In a frame unless the run is strict, because it lies in the workspace or is the output of a program: whoever works on a clone has to read it.
    Inline,
    /// As it is, because the planner asked to read a variable.
    Revealed,
    /// These values, which are numbers, flags or out of a closed list and no text; the rest is held in a variable.
    Values(String),
}

impl Showing {
    fn is_by_mode(&self) -> bool {
        *self == Self::ByMode
    }
}
