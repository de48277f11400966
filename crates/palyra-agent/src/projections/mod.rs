//! Tables that answer "what is there?" without reading the log: sessions and what was written to them, runs, approvals and agreed patterns, hooks, agents.
//!
//! They are functions of the records alone (see [`palyra_journal::Projection`]) and can be dropped at any time.

mod agents;
mod approvals;
mod artifacts;
mod auxiliary;
mod canvases;
mod file_labels;
mod hooks;
mod inputs;
mod past;
mod patterns;
mod runs;
mod session_log;
mod sessions;
mod usage;
mod usage_booking;

use std::sync::Arc;

use palyra_journal::{Projection, ProjectionError, StoredRecord};
use serde::de::DeserializeOwned;

pub use approvals::{ApprovalFilter, ApprovalPage, ApprovalRow};
pub use auxiliary::{AuxiliaryFilter, AuxiliaryRow};
pub use canvases::{CanvasFilter, CanvasRow};
pub use file_labels::{EndorsedFile, LabelledFile};
pub use hooks::HookBindingRow;
pub use inputs::QueuedInput;
pub use past::Said;
pub use patterns::PatternRow;
pub use runs::{RunFilter, RunRow};
pub use sessions::{Archived, SessionFilter, SessionRow};
pub use usage::QuarantinedUsage;

pub(crate) use agents::{AgentRemoved, AgentSet, agents, kind as agent_kind};
pub(crate) use approvals::{approval, approvals, approved_calls};
pub(crate) use artifacts::artifact_is_of;
pub(crate) use auxiliary::{auxiliary_task, auxiliary_tasks, unfinished_auxiliary};
pub(crate) use canvases::{canvas, canvas_changes, canvas_effect, canvas_version, canvases, open_canvases};
#[cfg(feature = "testing")]
pub(crate) use file_labels::written_files;
pub(crate) use file_labels::{FileEndorsed, endorsed_by, endorsed_files, kind as file_kind, labelled_files};
pub(crate) use hooks::{
    BindingRemoved, BindingSet, BindingSwitched, hook_binding, hook_bindings, hooks_due, kind as hook_kind,
};
pub(crate) use inputs::{Fate, input, sessions_with_waiting_inputs, steered_inputs, waiting_inputs};
pub(crate) use past::{Past, SaidRow, answer_labels, count_runs_through, each_said, past_runs, run_place};
pub(crate) use patterns::{Revoked, pattern, patterns};
pub(crate) use runs::{idempotent_run, newest_workspace, run, run_at_work, runs, unfinished_runs};
pub(crate) use session_log::session_log;
pub(crate) use sessions::{SessionState, session, session_by_key, sessions};
pub(crate) use usage::{
    CallWithoutRun, agent_of, grants, open_calls_without_run, open_reservations, quarantined, spent, spent_by,
    usage_rows,
};

/// All projections of the engine, for [`palyra_journal::JournalOptions`] and verification.
#[must_use]
pub fn projections() -> Vec<Arc<dyn Projection>> {
    vec![
        Arc::new(sessions::Sessions),
        Arc::new(session_log::SessionLog),
        Arc::new(inputs::Inputs),
        Arc::new(runs::Runs),
        Arc::new(approvals::Approvals),
        Arc::new(patterns::Patterns),
        Arc::new(usage::UsageTables),
        Arc::new(auxiliary::AuxiliaryTasks),
        Arc::new(hooks::Hooks),
        Arc::new(canvases::Canvases),
        Arc::new(agents::Agents),
        Arc::new(artifacts::ArtifactOwners),
        Arc::new(file_labels::FileLabelTables),
    ]
}

fn parse<T: DeserializeOwned>(record: &StoredRecord) -> Result<T, ProjectionError> {
    serde_json::from_slice(&record.payload)
        .map_err(|error| ProjectionError::Refused(format!("a {} record does not read: {error}", record.kind)))
}

/// Reads a typed id or contract value out of a text column.
fn typed<T: std::str::FromStr>(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: String = row.get(column)?;
    text.parse().map_err(|error: T::Err| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    })
}

fn typed_option<T: std::str::FromStr>(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<T>>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => typed(row, column).map(Some),
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, ProjectionError> {
    serde_json::to_string(value).map_err(|error| ProjectionError::Refused(error.to_string()))
}

fn from_json<T: DeserializeOwned>(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<Option<T>> {
    row.get::<_, Option<String>>(index)?
        .map(|text| {
            serde_json::from_str(&text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, Box::new(error))
            })
        })
        .transpose()
}
