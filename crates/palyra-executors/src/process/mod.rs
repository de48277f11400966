//! Processes: what they are given, how their output is kept, and what is left of them.
//!
//! One [`Processes`] serves a daemon. It starts the sandbox launcher when the first process is wanted, proves once per kernel and binary that
//! the sandbox holds, and knows every process that runs in the background. A process dies with its call, with its run and with the daemon.

mod background;
mod capture;
mod confinement;
mod containment;
mod denials;
mod grant;
mod input;
mod launch;
mod network;
mod options;
mod outcome;
mod readiness;
mod run;
mod start;

use std::path::PathBuf;
use std::sync::Arc;

use palyra_egress::Egress;
use palyra_tools::{CheckpointStore, Tool, ToolDeclaration, ToolError};

pub use options::ProcessOptions;

use background::Background;
use readiness::Readiness;

/// What all process tools share.
pub struct Processes {
    pub(crate) options: ProcessOptions,
    pub(crate) readiness: Readiness,
    pub(crate) egress: Egress,
    pub(crate) checkpoints: Arc<CheckpointStore>,
    pub(crate) background: Background,
    /// That programs run in a weaker tier than the one asked for is logged once.
    pub(crate) fallback_logged: std::sync::Once,
}

impl Processes {
    /// Prepares the tools; nothing is started yet.
    ///
    /// # Errors
    /// If the place for checkpoints cannot be used.
    pub fn new(options: ProcessOptions, egress: Egress) -> Result<Arc<Self>, ToolError> {
        let checkpoints = Arc::new(CheckpointStore::open(options.state.join("checkpoints"))?);
        let readiness = Readiness::new(options.launcher.clone(), options.state.clone());
        Ok(Arc::new(Self {
            options,
            readiness,
            egress,
            checkpoints,
            background: Background::default(),
            fallback_logged: std::sync::Once::new(),
        }))
    }

    /// The copies of workspaces from before programs wrote to them, for others whose programs do.
    #[must_use]
    pub fn checkpoints(&self) -> Arc<CheckpointStore> {
        Arc::clone(&self.checkpoints)
    }

    /// Directories outside of workspaces that programs may read.
    #[must_use]
    pub fn reads_outside(&self) -> &[PathBuf] {
        &self.options.read_only
    }

    /// Starts the launcher and proves the sandbox, ahead of the first process that needs them. What is wrong is logged here and told to
    /// whoever asks for a process.
    pub async fn prepare(&self) {
        if let Err(error) = self.readiness.get().await {
            tracing::warn!(%error, "processes cannot be started");
        }
    }

    /// Ends all background processes of a run.
    pub fn run_ended(&self, run_id: palyra_common::RunId) {
        self.background.end_run(run_id);
    }

    /// Ends all processes; waits until they are gone.
    pub async fn shutdown(&self) {
        self.background.end_all().await;
    }
}

/// The tools `palyra.process.*`.
#[must_use]
pub fn process_tools(processes: &Arc<Processes>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(run::ProcessRun::new(Arc::clone(processes))),
        Arc::new(start::ProcessStart::new(Arc::clone(processes))),
        Arc::new(background::ProcessStatus::new(Arc::clone(processes))),
        Arc::new(background::ProcessStop::new(Arc::clone(processes))),
        Arc::new(background::ProcessLogs::new(Arc::clone(processes))),
    ]
}

/// What they say about themselves.
pub(crate) fn declarations() -> Vec<ToolDeclaration> {
    vec![
        run::ProcessRun::declared(),
        start::ProcessStart::declared(),
        background::ProcessStatus::declared(),
        background::ProcessStop::declared(),
        background::ProcessLogs::declared(),
    ]
}
