//! The vocabulary of sessions: what they are made of, and the records that change them.
//!
//! Every payload here is on the journal for good, so fields are only ever added, with a default that says what older records meant. The tables
//! that follow from the records are in `projections`, the rules about them in `engine/sessions`.

use palyra_common::{AuxiliaryTaskId, InputMode, Label, RunId, RunMode, SessionId, StableErrorEnvelope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{Exchange, OutsideSender};
use crate::started_with::StartedWith;

/// The person of a daemon that serves one person, and of records that name nobody.
pub(crate) const LOCAL_USER: &str = "local";

pub(crate) fn local_user() -> String {
    LOCAL_USER.to_owned()
}

/// What runs of a session take where they are told nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionSettings {
    /// The model that plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The directory to work in, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The agent that carries runs out, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl SessionSettings {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a session is forked: after a run, or within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkPoint {
    /// The last run that belongs to the fork; the newest one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The last event of that run that belongs to the fork; all of them if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// Where a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedFrom {
    /// The session that was forked.
    pub session_id: SessionId,
    /// The last run of it that belongs to the fork; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The last event of that run that belongs to the fork; absent if the whole run does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// Whether a session is put away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveState {
    /// Put away: it is read, and takes no new runs.
    Archived,
    /// In use.
    Active,
}

/// Payload of a `session.created` record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionCreated {
    pub(crate) session_id: SessionId,
    pub(crate) key: Option<String>,
    pub(crate) title: String,
    #[serde(default = "local_user")]
    pub(crate) owner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<RunMode>,
    #[serde(default, skip_serializing_if = "SessionSettings::is_empty")]
    pub(crate) settings: SessionSettings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<Fork>,
}

/// What a fork takes with it. The runs themselves stay where they are; only what cannot be looked up later is kept here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fork {
    pub(crate) from: ForkedFrom,
    /// How many exchanges it inherits.
    pub(crate) inherited: u64,
    /// What was said in the last run up to the point, if the fork is within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cut: Option<Exchange>,
    /// The summary that stood for the oldest exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compaction: Option<Compaction>,
}

/// A summary that stands for the oldest exchanges of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compaction {
    /// The newest run that it stands for.
    pub through: RunId,
    /// How many exchanges it stands for.
    pub replaces: u64,
    /// What was asked, in the words of those who asked.
    pub asked: String,
    /// What was answered.
    pub answered: String,
    /// Label of `answered`.
    pub label: Label,
    /// How it was made; `extractive` means by first sentences, without a model.
    pub method: String,
    /// Why no model wrote it, where one was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The auxiliary task that wrote it, or was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<AuxiliaryTaskId>,
}

impl Compaction {
    /// Method of a summary that a model wrote.
    pub(crate) const BY_MODEL: &str = "model";
    /// Method of a summary out of first sentences.
    pub(crate) const EXTRACTIVE: &str = "extractive";
}

/// Payload of the records that change a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionChanged {
    pub(crate) session_id: SessionId,
    pub(crate) by: String,
    pub(crate) change: SessionChange,
}

/// One change of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionChange {
    Renamed {
        title: String,
    },
    Archived,
    Restored,
    ModeSet {
        mode: Option<RunMode>,
    },
    SettingsSet {
        settings: SessionSettings,
    },
    Compacted(Box<Compaction>),
    /// The newest summary was taken back; the one before it holds again, if there was one.
    CompactionReverted {
        restored: Option<Box<Compaction>>,
    },
}

impl SessionChange {
    /// The kind of its record.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Renamed { .. } => kind::RENAMED,
            Self::Archived => kind::ARCHIVED,
            Self::Restored => kind::RESTORED,
            Self::ModeSet { .. } => kind::MODE_SET,
            Self::SettingsSet { .. } => kind::SETTINGS_SET,
            Self::Compacted(_) => kind::COMPACTED,
            Self::CompactionReverted { .. } => kind::COMPACTION_REVERTED,
        }
    }
}

/// Payload of a `session.input` record: somebody wrote to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputGiven {
    pub(crate) session_id: SessionId,
    pub(crate) input_id: String,
    pub(crate) text: String,
    pub(crate) mode: InputMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<String>,
    pub(crate) by: String,
    /// With what it was given; see [`RunSpec::started_with`](crate::RunSpec).
    #[serde(default, skip_serializing_if = "StartedWith::is_default")]
    pub(crate) given_with: StartedWith,
    /// The agent that answers, if not the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Who wrote it, if it was not whose run it becomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<OutsideSender>,
}

/// Payload of a `session.input_taken` record: inputs became a run, or went into one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputsTaken {
    pub(crate) session_id: SessionId,
    pub(crate) input_ids: Vec<String>,
    pub(crate) run_id: RunId,
    pub(crate) how: Taken,
}

palyra_common::runtime_contract_enum! {
    /// What became of an input that was taken.
    pub enum Taken("input_taken") {
        /// A run began with it.
        Started = "started",
        /// It was put into the run at work.
        Steered = "steered",
    }
}

/// Payload of a `session.input_returned` record: the run that inputs went into ended before its model read them, so they wait again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputsReturned {
    pub(crate) session_id: SessionId,
    pub(crate) input_ids: Vec<String>,
    pub(crate) run_id: RunId,
}

/// Payload of a `session.input_withdrawn` record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputWithdrawn {
    pub(crate) session_id: SessionId,
    pub(crate) input_id: String,
    pub(crate) by: String,
}

/// Payload of a `session.input_failed` record: no run could be made of the inputs, today or tomorrow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputsFailed {
    pub(crate) session_id: SessionId,
    pub(crate) input_ids: Vec<String>,
    pub(crate) error: StableErrorEnvelope,
}

/// Kinds of records about sessions.
pub(crate) mod kind {
    pub(crate) const CREATED: &str = "session.created";
    pub(crate) const RENAMED: &str = "session.renamed";
    pub(crate) const ARCHIVED: &str = "session.archived";
    pub(crate) const RESTORED: &str = "session.restored";
    pub(crate) const MODE_SET: &str = "session.mode_set";
    pub(crate) const SETTINGS_SET: &str = "session.settings_set";
    pub(crate) const COMPACTED: &str = "session.compacted";
    pub(crate) const COMPACTION_REVERTED: &str = "session.compaction_reverted";
    pub(crate) const INPUT: &str = "session.input";
    pub(crate) const INPUT_TAKEN: &str = "session.input_taken";
    pub(crate) const INPUT_RETURNED: &str = "session.input_returned";
    pub(crate) const INPUT_WITHDRAWN: &str = "session.input_withdrawn";
    pub(crate) const INPUT_FAILED: &str = "session.input_failed";

    /// Whether a record of this kind changes its session.
    pub(crate) fn is_change(kind: &str) -> bool {
        matches!(kind, RENAMED | ARCHIVED | RESTORED | MODE_SET | SETTINGS_SET | COMPACTED | COMPACTION_REVERTED)
    }
}
