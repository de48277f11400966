//! Taking a summary of a session back.
//!
//! Nothing is lost by summarising, so nothing has to be restored: later runs are told again what the summary stood for. A summary takes over the one before
//! it; taking it back puts that one in force again. What a fork inherited is part of the fork and stays.

use palyra_common::SessionId;
use palyra_journal::{JournalError, Reader};

use super::change::check_version;
use super::{missing, read};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections::{self, SessionRow};
use crate::session::{Compaction, SessionChange, SessionChanged, kind};

/// What taking a summary back came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionReverted {
    /// Exchanges that later runs are told whole again.
    pub whole_again: u64,
    /// Exchanges that an earlier summary still stands for.
    pub still_summarised: u64,
}

impl CompactionReverted {
    fn of(taken_back: &Compaction, restored: Option<&Compaction>) -> Self {
        let still_summarised = restored.map_or(0, |summary| summary.replaces);
        Self { whole_again: taken_back.replaces.saturating_sub(still_summarised), still_summarised }
    }
}

impl Engine {
    /// What taking a summary back came to whose record is the first of a session from `seq` on.
    ///
    /// # Errors
    /// When there is no such session, or no such record.
    pub async fn compaction_reverted(
        &self,
        session_id: SessionId,
        seq: u64,
    ) -> Result<(SessionRow, CompactionReverted), AgentError> {
        let before = move |reader: &Reader| own_summaries(reader, session_id, seq);
        let taken_back = self.shared.options.journal.read(before).await?.pop();
        let taken_back = taken_back.ok_or(AgentError::NothingToRevert(session_id))?;
        let restored = self.shared.options.journal.read(move |reader| restored_from(reader, session_id, seq)).await?;
        let reverted = CompactionReverted::of(&taken_back, restored.as_ref());
        Ok((self.session(session_id).await?, reverted))
    }

    /// Takes the newest summary of a session back.
    ///
    /// # Errors
    /// When there is no such session, it changed meanwhile, or it has no summary of its own.
    pub async fn compact_revert(
        &self,
        session_id: SessionId,
        by: &str,
        expected_version: Option<u64>,
    ) -> Result<(SessionRow, CompactionReverted), AgentError> {
        let by = by.to_owned();
        self.to_the_end(|engine| async move {
            let _session = engine.shared.locks.session(session_id).await;
            let (state, mut summaries) = read(&engine, move |reader| {
                let Some(state) = projections::session(reader.connection(), session_id)? else {
                    return Ok(Err(missing(session_id)));
                };
                let summaries = own_summaries(reader, session_id, u64::MAX)?;
                Ok(Ok((state, summaries)))
            })
            .await?;
            check_version(&state.row, expected_version)?;
            let taken_back = summaries.pop().ok_or(AgentError::NothingToRevert(session_id))?;
            let restored = summaries.pop().or_else(|| state.fork.and_then(|fork| fork.compaction));
            let reverted = CompactionReverted::of(&taken_back, restored.as_ref());
            let change = SessionChange::CompactionReverted { restored: restored.map(Box::new) };
            Ok((engine.record_change(session_id, change, &by).await?, reverted))
        })
        .await
    }
}

/// The summary that the first revert from `seq` on put in force again.
fn restored_from(reader: &Reader, session_id: SessionId, seq: u64) -> Result<Option<Compaction>, JournalError> {
    for seq in projections::session_log(reader.connection(), session_id)?.into_iter().filter(|other| *other >= seq) {
        let record = reader.record(seq)?;
        if record.kind.as_ref() == kind::COMPACTION_REVERTED
            && let Ok(SessionChange::CompactionReverted { restored }) =
                serde_json::from_slice::<SessionChanged>(&record.payload).map(|changed| changed.change)
        {
            return Ok(restored.map(|summary| *summary));
        }
    }
    Ok(None)
}

/// A summary, and the one of the same session that it took over.
pub(super) struct MadeSummary {
    pub(super) summary: Compaction,
    pub(super) earlier: Option<Compaction>,
}

/// The first summary that was made in a session from `seq` on.
pub(super) fn summary_from(
    reader: &Reader,
    session_id: SessionId,
    seq: u64,
) -> Result<Option<MadeSummary>, JournalError> {
    for seq in projections::session_log(reader.connection(), session_id)?.into_iter().filter(|other| *other >= seq) {
        let record = reader.record(seq)?;
        if record.kind.as_ref() == kind::COMPACTED
            && let Ok(SessionChange::Compacted(summary)) =
                serde_json::from_slice::<SessionChanged>(&record.payload).map(|changed| changed.change)
        {
            let earlier = own_summaries(reader, session_id, seq)?.pop();
            return Ok(Some(MadeSummary { summary: *summary, earlier }));
        }
    }
    Ok(None)
}

/// The summaries that were made in a session before a record and not taken back by then, oldest first.
fn own_summaries(reader: &Reader, session_id: SessionId, before: u64) -> Result<Vec<Compaction>, JournalError> {
    let mut summaries = Vec::new();
    for seq in projections::session_log(reader.connection(), session_id)?.into_iter().filter(|seq| *seq < before) {
        let record = reader.record(seq)?;
        if !matches!(record.kind.as_ref(), kind::COMPACTED | kind::COMPACTION_REVERTED) {
            continue;
        }
        // What does not read was never projected either.
        match serde_json::from_slice::<SessionChanged>(&record.payload).map(|changed| changed.change) {
            Ok(SessionChange::Compacted(summary)) => summaries.push(*summary),
            Ok(SessionChange::CompactionReverted { .. }) => {
                summaries.pop();
            }
            _ => {}
        }
    }
    Ok(summaries)
}
