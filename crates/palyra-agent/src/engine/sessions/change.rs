//! Changing sessions: names, archive, mode and settings.

use palyra_common::{RunMode, SessionId};

use super::{MAX_TITLE, check_name};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections::SessionRow;
use crate::session::{ArchiveState, SessionChange, SessionChanged, SessionSettings};

impl Engine {
    /// Gives a session another title.
    ///
    /// # Errors
    /// When there is no such session, it changed meanwhile, or the title is wrong.
    pub async fn rename_session(
        &self,
        id: SessionId,
        title: String,
        by: &str,
        expected_version: Option<u64>,
    ) -> Result<SessionRow, AgentError> {
        check_name("title", &title, MAX_TITLE)?;
        let unchanged = |row: &SessionRow, change: &SessionChange| matches!(change, SessionChange::Renamed { title } if *title == row.title);
        self.change_session(id, SessionChange::Renamed { title }, by, expected_version, unchanged).await
    }

    /// Puts a session away, or takes it out again. Runs that are at work go on; what waits in its queue waits on.
    ///
    /// # Errors
    /// When there is no such session or it changed meanwhile.
    pub async fn archive_session(
        &self,
        id: SessionId,
        state: ArchiveState,
        by: &str,
        expected_version: Option<u64>,
    ) -> Result<SessionRow, AgentError> {
        let change = match state {
            ArchiveState::Archived => SessionChange::Archived,
            ArchiveState::Active => SessionChange::Restored,
        };
        let unchanged = |row: &SessionRow, change: &SessionChange| {
            row.archived_at.is_some() == (*change == SessionChange::Archived)
        };
        let row = self.change_session(id, change, by, expected_version, unchanged).await?;
        if state == ArchiveState::Active {
            self.work_off_later(id);
        }
        Ok(row)
    }

    /// Says how the runs of a session treat untrusted results; nothing means as configured.
    ///
    /// # Errors
    /// When there is no such session or it changed meanwhile.
    pub async fn set_session_mode(
        &self,
        id: SessionId,
        mode: Option<RunMode>,
        by: &str,
        expected_version: Option<u64>,
    ) -> Result<SessionRow, AgentError> {
        let unchanged = |row: &SessionRow, change: &SessionChange| *change == SessionChange::ModeSet { mode: row.mode };
        self.change_session(id, SessionChange::ModeSet { mode }, by, expected_version, unchanged).await
    }

    /// Says what the runs of a session take where they are told nothing else.
    ///
    /// # Errors
    /// When there is no such session or it changed meanwhile.
    pub async fn set_session_settings(
        &self,
        id: SessionId,
        settings: SessionSettings,
        by: &str,
        expected_version: Option<u64>,
    ) -> Result<SessionRow, AgentError> {
        let unchanged = |row: &SessionRow, change: &SessionChange| matches!(change, SessionChange::SettingsSet { settings } if *settings == row.settings);
        self.change_session(id, SessionChange::SettingsSet { settings }, by, expected_version, unchanged).await
    }

    /// Records a change, unless it changes nothing. What was expected is checked first either way.
    async fn change_session(
        &self,
        id: SessionId,
        change: SessionChange,
        by: &str,
        expected_version: Option<u64>,
        unchanged: impl FnOnce(&SessionRow, &SessionChange) -> bool + Send + 'static,
    ) -> Result<SessionRow, AgentError> {
        let by = by.to_owned();
        self.to_the_end(|engine| async move {
            let _session = engine.shared.locks.session(id).await;
            let row = engine.session(id).await?;
            check_version(&row, expected_version)?;
            if unchanged(&row, &change) {
                return Ok(row);
            }
            engine.record_change(id, change, &by).await
        })
        .await
    }

    /// Records a change. The caller holds the session's lock.
    pub(super) async fn record_change(
        &self,
        session_id: SessionId,
        change: SessionChange,
        by: &str,
    ) -> Result<SessionRow, AgentError> {
        let kind = change.kind();
        let changed = SessionChanged { session_id, by: by.to_owned(), change };
        let record = self.session_record(kind, session_id, &changed)?;
        self.shared.options.journal.append(vec![record]).await?;
        self.session(session_id).await
    }
}

/// Whether a session is still what the caller saw. The caller of this holds the session's lock until the commit.
pub(in crate::engine) fn check_version(row: &SessionRow, expected: Option<u64>) -> Result<(), AgentError> {
    match expected {
        Some(expected) if expected != row.version => {
            Err(AgentError::VersionConflict { session_id: row.session_id, expected, actual: row.version })
        }
        _ => Ok(()),
    }
}
