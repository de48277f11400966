//! What summaries of a run's context stand for: read from its tape, shown, and put back.

use palyra_common::{RunId, RunLifecyclePhase};
use palyra_journal::StoredRecord;

use super::Engine;
use crate::context::Item;
use crate::error::AgentError;
use crate::machine::{Input, Machine};
use crate::tape::TapeEntry;

/// What the summaries of a context stand for, the oldest first. The first item of each but the oldest is the summary before it.
#[derive(Debug, Clone, Default)]
pub(super) struct SetAside(Vec<Vec<Item>>);

impl SetAside {
    /// Takes note of an input that the machine is about to take.
    pub(super) fn note(&mut self, machine: &Machine, input: &Input) {
        match input {
            Input::Compacted { replaces, .. } => {
                let end = (1 + *replaces as usize).min(machine.items().len());
                self.0.push(machine.items().get(1..end).unwrap_or_default().to_vec());
            }
            Input::CompactionReverted { .. } => {
                self.0.pop();
            }
            _ => {}
        }
    }

    /// Everything that is summarised now, as it was, oldest first.
    pub(super) fn whole(&self) -> Vec<Item> {
        let newer = self.0.iter().enumerate().flat_map(|(number, items)| {
            // What stands at the head of a later one is the summary that is told before it.
            let skipped = usize::from(number > 0 && matches!(items.first(), Some(Item::Summary { .. })));
            items.iter().skip(skipped).cloned()
        });
        newer.collect()
    }

    fn newest(self) -> Option<Vec<Item>> {
        self.0.into_iter().next_back()
    }
}

impl Engine {
    /// Takes the newest summary of a held run's context back: its next model call sees again what the summary stood for.
    ///
    /// # Errors
    /// When there is no such run, it is not held, nothing of it is summarised, or the originals do not fit its model.
    pub async fn revert_run_compaction(&self, run_id: RunId, by: &str) -> Result<(), AgentError> {
        let by = by.to_owned();
        self.to_the_end(|engine| async move {
            let row = engine.run(run_id).await?;
            if row.phase != RunLifecyclePhase::Failed {
                let input = engine.reverting(run_id, by).await?;
                return engine.send(run_id, input).await;
            }
            // Nobody drives it: its tape is written here, and nobody may take it up meanwhile.
            let _held = engine.shared.locks.session(row.session_id).await;
            engine.wait_until_left(run_id).await;
            let input = engine.reverting(run_id, by).await?;
            engine.note_on_failed(run_id, input).await
        })
        .await
    }

    async fn reverting(&self, run_id: RunId, by: String) -> Result<Input, AgentError> {
        let set_aside = set_aside(&self.whole_tape(run_id).await?)?;
        let phase = self.run(run_id).await?.phase;
        let nothing = AgentError::WrongPhase { run_id, phase, why: "nothing of its context is summarised" };
        Ok(Input::CompactionReverted { by, originals: set_aside.newest().ok_or(nothing)? })
    }
}

/// What the summaries at the end of a tape stand for.
fn set_aside(tape: &[StoredRecord]) -> Result<SetAside, AgentError> {
    let mut machine: Option<Machine> = None;
    let mut set_aside = SetAside::default();
    for record in tape {
        match (TapeEntry::from_record(record)?, &mut machine) {
            (TapeEntry::Input(Input::Accepted(spec)), None) => machine = Some(Machine::accept(*spec, record.at)),
            (TapeEntry::Input(input), Some(machine)) => {
                set_aside.note(machine, &input);
                // What is refused here was taken then: replay proper would say so.
                let _ = machine.step(input, record.at);
            }
            _ => {}
        }
    }
    Ok(set_aside)
}
