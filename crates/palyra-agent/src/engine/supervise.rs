//! Restarting a driver that failed.
//!
//! A driver waits for a journal that cannot take records, so it fails only when something contradicts it: a projection refuses a record, or a commit that was
//! reported as failed turns out to be on the tape. The run is then rebuilt from its tape in the same way as after a restart of the daemon and goes on, with the same
//! inbox and the same followers. A run that fails again and again is ended with a note that says why: no run stays unfinished without a driver.

use std::sync::Arc;
use std::time::Duration;

use palyra_common::{RunId, ToStableError as _};

use super::Engine;
use super::driver::Driver;
use super::live_tape::{LiveTape, Weighed};
use crate::error::AgentError;
use crate::machine::{Action, Input};
use crate::tape;

/// Restarts in a row without a single commit in between, after which the run is ended.
const MOST_RESTARTS: u32 = 3;
/// Pause before a restart.
const PAUSE: Duration = Duration::from_millis(250);

/// How often a driver was restarted since its run last got on.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    in_a_row: u32,
    last_seq: u64,
}

impl Engine {
    /// A new driver for a run whose driver failed, and what it carries out first. `None` if the run is over or the daemon is stopping.
    pub(super) async fn restart_driver(
        &self,
        run_id: RunId,
        failed: Driver,
        mut error: AgentError,
        restarts: &mut Restarts,
    ) -> Option<(Driver, Vec<Action>)> {
        let live_tape = failed.live_tape();
        // Its calls end with it; what became of them is decided in the same way as after a crash.
        drop(failed);
        loop {
            tracing::error!(%run_id, error = %error.to_stable(), "the run's driver failed; restarting it from the tape");
            tokio::select! {
                () = self.shared.stopping.cancelled() => return None,
                () = tokio::time::sleep(PAUSE) => {}
            }
            let restarted = match restarts.in_a_row {
                MOST_RESTARTS.. => self.give_up(run_id, error.to_stable().message).await.map(|_| None),
                _ => self.driver_from_tape(run_id, restarts).await,
            };
            let caught_up = async {
                let restarted = restarted?;
                self.publish_missing(run_id, &live_tape).await?;
                Ok::<_, AgentError>(restarted)
            };
            match caught_up.await {
                Ok(None) => return None,
                Ok(Some((driver, actions))) => return Some((driver.on_live_tape(live_tape), actions)),
                Err(AgentError::Journal(cause)) if cause.is_transient() => error = cause.into(),
                Err(cause) => {
                    // The tape or the workspace is at fault, today and tomorrow.
                    restarts.in_a_row = MOST_RESTARTS;
                    error = cause;
                }
            }
        }
    }

    async fn driver_from_tape(
        &self,
        run_id: RunId,
        restarts: &mut Restarts,
    ) -> Result<Option<(Driver, Vec<Action>)>, AgentError> {
        let (machine, workspace, images, last_seq) = self.rebuild(run_id).await?;
        if machine.is_over() {
            return Ok(None);
        }
        restarts.in_a_row = if last_seq > restarts.last_seq { 1 } else { restarts.in_a_row + 1 };
        let interrupted = machine.is_interrupted_by_restart();
        let mut driver = Driver::new(Arc::clone(&self.shared), machine, workspace, last_seq).with_images(images);
        let actions = if interrupted { driver.take_up(vec![Input::Recovered]).await? } else { Vec::new() };
        restarts.last_seq = driver.last_seq();
        Ok(Some((driver, actions)))
    }

    /// Followers of the run see what was committed without their driver knowing it.
    async fn publish_missing(&self, run_id: RunId, live_tape: &LiveTape) -> Result<(), AgentError> {
        let known = live_tape.last_seq();
        let missing =
            self.shared.options.journal.read(move |reader| reader.run_tape(run_id, known + 1, usize::MAX)).await?;
        let events = missing.iter().map(|record| {
            let bytes = record.payload.len();
            tape::event_of_record(run_id, record).map(|event| Weighed { event, bytes })
        });
        live_tape.publish(events.collect::<Result<_, _>>()?);
        Ok(())
    }
}
