//! How a session came to be: its story in order, from the journal.

use palyra_common::{
    ApprovalDecision, ApprovalId, InputMode, RunId, RunLifecyclePhase, RunMode, SessionId, StableErrorEnvelope,
    StatusDetail, TerminationReason, Timestamp,
};
use palyra_journal::{JournalError, Reader, StoredRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{missing, read};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections::{self, ApprovalFilter, ApprovalPage, RunFilter};
use crate::session::{
    ForkedFrom, InputGiven, InputWithdrawn, InputsFailed, InputsReturned, InputsTaken, SessionChange, SessionChanged,
    SessionCreated, SessionSettings, Taken, kind,
};

/// Most runs that one account tells of, the newest ones.
const MOST_RUNS: u32 = 10_000;

/// The story of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionAccount {
    /// The session.
    pub session_id: SessionId,
    /// Its version when this was told.
    pub version: u64,
    /// What happened, in order.
    pub events: Vec<SessionEvent>,
}

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEvent {
    /// When.
    pub at: Timestamp,
    /// Who did it, where somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The record that says so, where it is one record about the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// What.
    #[serde(flatten)]
    pub what: SessionEventKind,
}

/// What happened to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SessionEventKind {
    /// It was created.
    Created {
        /// The title it began with.
        title: String,
        /// The owner's own name for it.
        key: Option<String>,
    },
    /// It was created as a fork.
    Forked {
        /// The title it began with.
        title: String,
        /// Where it comes from.
        from: ForkedFrom,
        /// How many exchanges it inherited.
        inherited: u64,
    },
    /// It was given another title.
    Renamed {
        /// The title.
        title: String,
    },
    /// It was put away.
    Archived,
    /// It was taken out of the archive.
    Restored,
    /// It was said how its runs treat untrusted results.
    ModeSet {
        /// How; nothing means as configured.
        mode: Option<RunMode>,
    },
    /// It was said what its runs take where they are told nothing else.
    SettingsSet {
        /// What.
        settings: SessionSettings,
    },
    /// Its oldest exchanges were summarised.
    Compacted {
        /// The newest run that the summary stands for.
        through: RunId,
        /// How many exchanges it stands for.
        replaces: u64,
        /// How it was made.
        method: String,
    },
    /// The newest summary was taken back.
    CompactionReverted {
        /// How many exchanges an earlier summary still stands for.
        still_summarised: u64,
    },
    /// Somebody wrote to it.
    InputGiven {
        /// The input.
        input_id: String,
        /// What was to become of it.
        mode: InputMode,
    },
    /// Inputs became a run, or went into one.
    InputsTaken {
        /// The inputs.
        input_ids: Vec<String>,
        /// The run.
        run_id: RunId,
        /// Which of the two.
        how: Taken,
    },
    /// The run that inputs went into ended before its model read them; they wait again.
    InputsReturned {
        /// The inputs.
        input_ids: Vec<String>,
        /// The run.
        run_id: RunId,
    },
    /// An input was taken back.
    InputWithdrawn {
        /// The input.
        input_id: String,
    },
    /// No run could be made of inputs.
    InputsFailed {
        /// The inputs.
        input_ids: Vec<String>,
        /// Why.
        error: Box<StableErrorEnvelope>,
    },
    /// A run was accepted.
    RunAccepted {
        /// The run.
        run_id: RunId,
        /// The beginning of its task.
        prompt: String,
    },
    /// A run ended.
    RunEnded {
        /// The run.
        run_id: RunId,
        /// In which phase.
        phase: RunLifecyclePhase,
        /// Why.
        reason: Option<TerminationReason>,
        /// What exactly ended it.
        detail: Option<StatusDetail>,
    },
    /// A person was asked.
    ApprovalRequested {
        /// The question.
        approval_id: ApprovalId,
        /// The run that asked.
        run_id: RunId,
        /// What, in one line.
        summary: String,
    },
    /// A question was answered or taken back.
    ApprovalClosed {
        /// The question.
        approval_id: ApprovalId,
        /// The answer; nothing if it was taken back.
        decision: Option<ApprovalDecision>,
    },
}

impl Engine {
    /// How a session came to be.
    ///
    /// # Errors
    /// When there is no such session or a record cannot be read.
    pub async fn explain_session(&self, session_id: SessionId) -> Result<SessionAccount, AgentError> {
        read(self, move |reader| {
            let Some(state) = projections::session(reader.connection(), session_id)? else {
                return Ok(Err(missing(session_id)));
            };
            let mut events = Vec::new();
            let log = projections::session_log(reader.connection(), session_id)?;
            for seq in std::iter::once(state.created_seq).chain(log) {
                let record = reader.record(seq)?;
                match told(&record) {
                    Ok(event) => events.extend(event),
                    Err(error) => {
                        let message = format!("record {seq} does not read: {error}");
                        return Ok(Err(AgentError::Internal(message)));
                    }
                }
            }
            events.extend(of_runs(reader, session_id)?);
            // Stable: what happened in the same millisecond stays in the order in which it was found.
            events.sort_by_key(|event| event.at);
            Ok(Ok(SessionAccount { session_id, version: state.row.version, events }))
        })
        .await
    }
}

/// What a record about the session itself says.
fn told(record: &StoredRecord) -> serde_json::Result<Option<SessionEvent>> {
    use SessionEventKind as Kind;
    let (by, what) = match record.kind.as_ref() {
        kind::CREATED => {
            let SessionCreated { owner, title, key, fork, .. } = record.parse()?;
            let what = match fork {
                Some(fork) => Kind::Forked { title, from: fork.from, inherited: fork.inherited },
                None => Kind::Created { title, key },
            };
            (Some(owner), what)
        }
        kind::INPUT => {
            let InputGiven { input_id, mode, by, .. } = record.parse()?;
            (Some(by), Kind::InputGiven { input_id, mode })
        }
        kind::INPUT_TAKEN => {
            let InputsTaken { input_ids, run_id, how, .. } = record.parse()?;
            (None, Kind::InputsTaken { input_ids, run_id, how })
        }
        kind::INPUT_RETURNED => {
            let InputsReturned { input_ids, run_id, .. } = record.parse()?;
            (None, Kind::InputsReturned { input_ids, run_id })
        }
        kind::INPUT_WITHDRAWN => {
            let InputWithdrawn { input_id, by, .. } = record.parse()?;
            (Some(by), Kind::InputWithdrawn { input_id })
        }
        kind::INPUT_FAILED => {
            let InputsFailed { input_ids, error, .. } = record.parse()?;
            (None, Kind::InputsFailed { input_ids, error: Box::new(error) })
        }
        other if kind::is_change(other) => {
            let SessionChanged { by, change, .. } = record.parse()?;
            (Some(by), changed(change))
        }
        // A kind of a later release; its story is told by that release.
        _ => return Ok(None),
    };
    Ok(Some(SessionEvent { at: record.at, by, record: Some(record.seq), what }))
}

fn changed(change: SessionChange) -> SessionEventKind {
    match change {
        SessionChange::Renamed { title } => SessionEventKind::Renamed { title },
        SessionChange::Archived => SessionEventKind::Archived,
        SessionChange::Restored => SessionEventKind::Restored,
        SessionChange::ModeSet { mode } => SessionEventKind::ModeSet { mode },
        SessionChange::SettingsSet { settings } => SessionEventKind::SettingsSet { settings },
        SessionChange::Compacted(summary) => {
            SessionEventKind::Compacted { through: summary.through, replaces: summary.replaces, method: summary.method }
        }
        SessionChange::CompactionReverted { restored } => {
            let still_summarised = restored.map_or(0, |summary| summary.replaces);
            SessionEventKind::CompactionReverted { still_summarised }
        }
    }
}

/// What the runs of a session did to its story, oldest first.
fn of_runs(reader: &Reader, session_id: SessionId) -> Result<Vec<SessionEvent>, JournalError> {
    let db = reader.connection();
    let filter = RunFilter { session_id: Some(session_id), limit: MOST_RUNS, ..RunFilter::default() };
    let mut runs = projections::runs(db, &filter)?;
    runs.reverse();
    let mut events = Vec::new();
    for run in runs {
        let run_id = run.run_id;
        let mut push = |at, by, what| events.push(SessionEvent { at, by, record: None, what });
        push(run.created_at, Some(run.owner), SessionEventKind::RunAccepted { run_id, prompt: run.prompt });
        for approval in
            projections::approvals(db, ApprovalFilter { run_id: Some(run_id), open: None }, ApprovalPage::WHOLE)?
        {
            let approval_id = approval.approval_id;
            let asked = SessionEventKind::ApprovalRequested { approval_id, run_id, summary: approval.summary.clone() };
            push(approval.requested_at, None, asked);
            if let Some(at) = approval.closed_at {
                let decision = approval.decision;
                push(at, approval.by, SessionEventKind::ApprovalClosed { approval_id, decision });
            }
        }
        if let Some(at) = run.ended_at {
            let (phase, reason, detail) = (run.phase, run.reason, run.detail);
            push(at, None, SessionEventKind::RunEnded { run_id, phase, reason, detail });
        }
    }
    Ok(events)
}
