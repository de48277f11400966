//! Puts on record that the machine was suspended or somebody set the clock, whether or not a run is at work.
//!
//! Runs are told by their drivers, on their own tapes. Everything else that has a deadline on the wall clock moves it by these records.

use std::sync::Arc;
use std::time::Duration;

use palyra_common::ClockOffsets;
use palyra_journal::NewRecord;
use serde::{Deserialize, Serialize};

use super::Engine;
use super::driver::{DOWN_TOLERANCE_MS, clock_gap};
use crate::error::AgentError;
use crate::machine::ClockGap;

/// The kind of these records.
pub const CLOCK_STEPPED: &str = "clock.stepped";
/// How often the clocks are compared.
const EVERY: Duration = Duration::from_secs(1);

/// The clock says another time than has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStepped {
    /// By how much the clock is ahead of the time that counts, in milliseconds; less than zero if it is behind.
    pub by_ms: i64,
    /// Why.
    pub gap: ClockGap,
}

impl Engine {
    /// Records the time in which no daemon ran, if it is worth a record. Before anything is served, so that no deadline lapses in between.
    pub(super) async fn record_down_time(&self) -> Result<(), AgentError> {
        let by_ms = self.shared.down_ms;
        if by_ms.abs() < DOWN_TOLERANCE_MS {
            return Ok(());
        }
        match self.record_step(ClockStepped { by_ms, gap: ClockGap::DaemonDown }).await {
            // A start on a full disk answers; deadlines are then only as late as the clock says.
            Err(AgentError::Journal(error)) if error.is_transient() => {
                tracing::warn!(%error, by_ms, "cannot record how long no daemon was running");
                Ok(())
            }
            recorded => recorded,
        }
    }

    /// Compares the clocks until the engine stops or is gone.
    pub(super) fn watch_clock(&self) {
        let (shared, stopping) = (Arc::downgrade(&self.shared), self.shared.stopping.clone());
        let mut known = ClockOffsets::read(self.shared.options.clock.as_ref());
        self.shared.drivers.spawn(async move {
            loop {
                tokio::select! {
                    () = stopping.cancelled() => return,
                    () = tokio::time::sleep(EVERY) => {}
                }
                let Some(shared) = shared.upgrade() else { return };
                let engine = Self { shared };
                let offsets = ClockOffsets::read(engine.shared.options.clock.as_ref());
                for change in offsets.changes_since(known) {
                    let (by_ms, gap) = clock_gap(change);
                    match engine.record_step(ClockStepped { by_ms, gap }).await {
                        Ok(()) => known = known.with(change),
                        // Looked at again after the pause; the difference is still there.
                        Err(error) => tracing::warn!(%error, by_ms, "cannot record what happened to the clock"),
                    }
                }
            }
        });
    }

    async fn record_step(&self, step: ClockStepped) -> Result<(), AgentError> {
        tracing::warn!(by_ms = step.by_ms, gap = step.gap.as_str(), "the clock says another time than has passed");
        let payload = serde_json::to_vec(&step).map_err(|error| AgentError::Internal(error.to_string()))?;
        let record = NewRecord::new(CLOCK_STEPPED, self.shared.options.clock.now(), payload);
        self.shared.options.journal.append(vec![record]).await?;
        Ok(())
    }
}
