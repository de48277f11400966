//! Restarts and clocks: what a run has to be told when the daemon was away, the machine was suspended or somebody set the clock.

use std::sync::Arc;

use palyra_common::{CLOCK_TOLERANCE, ClockChange, ClockOffsets, Timestamp};
use tokio::sync::mpsc;

use super::{Command, Driver};
use crate::error::AgentError;
use crate::machine::{Action, ClockGap, Input};
use crate::tape::{EntryRef, Note};

/// A daemon that is away for less costs nothing worth a record, unless so little time is left until a deadline.
pub(in crate::engine) const DOWN_TOLERANCE_MS: i64 = 10 * 60 * 1_000;

impl Driver {
    /// Takes up a run that was rebuilt after a restart and drives it to its end.
    pub(in crate::engine) async fn recover(mut self, inbox: mpsc::Receiver<Command>) {
        let first = self.interrupted().await;
        self.run_to_end(inbox, first).await;
    }

    /// Tells the machine that a restart interrupted its work, if there was any; what it asks for may need tools that come from outside.
    async fn interrupted(&mut self) -> Result<Vec<Action>, AgentError> {
        let mut inputs: Vec<Input> = self.daemon_was_down().into_iter().collect();
        if self.shared.options.journal.restore_waits() {
            // Whatever it did after the backup was made is not on its tape: a person looks before it goes on.
            inputs.extend(self.machine.is_interrupted_by_restore().then_some(Input::Restored));
        } else if self.machine.is_interrupted_by_restart() {
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                biased;
                () = shared.stopping.cancelled() => return Ok(Vec::new()),
                () = shared.options.discovery.ready() => {}
            }
            self.note_unavailable_sources(shared.options.clock.now())?;
            inputs.push(Input::Recovered);
        }
        if inputs.is_empty() { Ok(Vec::new()) } else { self.take_up(inputs).await }
    }

    /// Notes which configured sources of tools the run has to do without for now.
    pub(in crate::engine) fn note_unavailable_sources(&mut self, at: Timestamp) -> Result<(), AgentError> {
        let sources = self.shared.options.discovery.unavailable();
        if sources.is_empty() {
            return Ok(());
        }
        self.stage(EntryRef::Note(&Note::ToolsUnavailable { sources }), at)
    }

    /// What the machine has to be told about the clocks first, if the machine was suspended or somebody set the clock since the last time.
    pub(super) fn clock_changes(&mut self) -> Vec<Input> {
        if self.machine.is_over() {
            return Vec::new();
        }
        let offsets = ClockOffsets::read(self.shared.options.clock.as_ref());
        let told = offsets.changes_since(self.clock_offsets).map(|change| {
            let (by_ms, gap) = gap(change);
            tracing::warn!(
                run_id = %self.machine.spec().run_id, by_ms, gap = gap.as_str(),
                "the clock went on without time passing; deadlines move with it"
            );
            self.clock_offsets = self.clock_offsets.with(change);
            Input::ClockAdjusted { by_ms, gap }
        });
        told.collect()
    }

    /// What the machine has to be told about the time in which no daemon ran, if any of its deadlines could lapse by it.
    fn daemon_was_down(&self) -> Option<Input> {
        let by_ms = self.shared.down_ms;
        let deadline = self.machine.next_deadline()?;
        let left_ms = deadline.0.saturating_sub(self.shared.options.clock.now().0);
        let is_close =
            u128::try_from(by_ms).is_ok_and(|by| by >= CLOCK_TOLERANCE.as_millis()) && left_ms < DOWN_TOLERANCE_MS;
        (is_close || by_ms.abs() >= DOWN_TOLERANCE_MS)
            .then_some(Input::ClockAdjusted { by_ms, gap: ClockGap::DaemonDown })
    }
}

/// A change of the clocks, as records name it.
pub(in crate::engine) const fn gap(change: ClockChange) -> (i64, ClockGap) {
    match change {
        ClockChange::Suspended { millis } => (millis, ClockGap::Suspended),
        ClockChange::Set { millis } => (millis, ClockGap::ClockSet),
    }
}
