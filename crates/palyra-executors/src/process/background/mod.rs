//! Processes that run beside their run: which there are, and how they end.
//!
//! INVARIANT: the table holds every background process that lives. An entry that is dropped kills its process tree, because the child is in the task
//! that follows it and nowhere else.

mod logs;
mod running;
mod status;
mod stop;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::{ErrorCategory, RunId, StableErrorEnvelope};
use palyra_tools::ToolError;

pub(super) use logs::ProcessLogs;
pub(super) use running::Running;
pub(super) use status::ProcessStatus;
pub(super) use stop::ProcessStop;

/// Background processes of one run at the same time; more are a mistake or an attack.
const PER_RUN: usize = 16;

/// All background processes of the daemon.
#[derive(Default)]
pub(crate) struct Background {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    runs: BTreeMap<RunId, BTreeMap<String, Arc<Running>>>,
    started: u64,
}

impl Background {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // The table is whole between any two statements.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses one process too many.
    pub(super) fn require_room(&self, run: RunId) -> Result<(), ToolError> {
        let table = self.lock();
        let living = table.runs.get(&run).map_or(0, |own| own.values().filter(|running| running.lives()).count());
        if living < PER_RUN {
            return Ok(());
        }
        let message = format!("{living} processes are already running in the background");
        let refusal = StableErrorEnvelope::new("too_many_processes", ErrorCategory::Conflict, message)
            .hint("stop one with palyra.process.stop first");
        Err(ToolError::Custom(Box::new(refusal)))
    }

    /// Takes a process into the table and names it.
    pub(super) fn add(&self, run: RunId, running: Running) -> String {
        let mut table = self.lock();
        table.started += 1;
        let id = format!("p{}", table.started);
        table.runs.entry(run).or_default().insert(id.clone(), Arc::new(running));
        id
    }

    /// A process of this run. Those of other runs do not exist for it.
    fn find(&self, run: RunId, id: &str) -> Result<Arc<Running>, ToolError> {
        let table = self.lock();
        let own = table.runs.get(&run);
        own.and_then(|own| own.get(id)).cloned().ok_or_else(|| {
            let known: Vec<&str> = own.into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
            let hint = if known.is_empty() {
                "start one with palyra.process.start".to_owned()
            } else {
                format!("this run started: {}", known.join(", "))
            };
            let message = format!("this run has no process `{id}`");
            let refusal = StableErrorEnvelope::new("process_not_found", ErrorCategory::NotFound, message).hint(hint);
            ToolError::Custom(Box::new(refusal))
        })
    }

    /// Ends the processes of a run.
    pub(crate) fn end_run(&self, run: RunId) {
        for running in self.lock().runs.remove(&run).into_iter().flatten().map(|(_, running)| running) {
            running.kill();
        }
    }

    /// Ends all processes and waits for their ends.
    pub(crate) async fn end_all(&self) {
        let runs = std::mem::take(&mut self.lock().runs);
        let all: Vec<_> = runs.into_values().flatten().map(|(_, running)| running).collect();
        for running in &all {
            running.kill();
        }
        for running in all {
            running.ended().await;
        }
    }
}
