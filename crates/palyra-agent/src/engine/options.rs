//! What the engine is built from.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{Clock, RunId, RunMode};
use palyra_journal::Journal;
use palyra_models::ModelProvider;
use palyra_tools::{EffectStore, SharedRegistry, ToolLimits, TrustedTrees};

use super::discovery::ToolDiscovery;
use super::safety::Safety;
use super::spending::Spending;
use super::workspaces::WorkspaceRoots;
use crate::decide::Decide;
use crate::hooks::HookRunner;
use crate::spec::RunLimits;

/// Parts and settings of an engine, resolved.
#[derive(Clone)]
pub struct EngineOptions {
    /// Where everything is recorded. Has to be opened with [`crate::projections`].
    pub journal: Journal,
    /// The tools there are.
    pub registry: SharedRegistry,
    /// What completes them; [`NoDiscovery`](crate::NoDiscovery) where nothing comes from outside.
    pub discovery: Arc<dyn ToolDiscovery>,
    /// The model that plans.
    pub provider: Arc<dyn ModelProvider>,
    /// What model calls cost and may cost.
    pub spending: Arc<Spending>,
    /// What every effect has to pass.
    pub decider: Arc<dyn Decide>,
    /// What scans every text that changes hands.
    pub safety: Safety,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where writes are staged.
    pub effects: Arc<EffectStore>,
    /// How runs that ask for nothing else treat untrusted results.
    pub mode: RunMode,
    /// Bounds on a run that asks for no others.
    pub limits: RunLimits,
    /// Bounds on a tool call.
    pub tool_limits: ToolLimits,
    /// How long a tool may work, if it declares no shorter time.
    pub tool_timeout: Duration,
    /// Runs at work at the same time; more of them wait in the queue.
    pub max_concurrent: usize,
    /// Auxiliary tasks at work at the same time; more of them wait in a line of their own.
    pub auxiliary_concurrent: usize,
    /// Upper bound of a model's answer.
    pub max_output_tokens: Option<u32>,
    /// Palyra's own files and directories, which are not there for tools even where a workspace contains them.
    pub protected: Vec<PathBuf>,
    /// Where each principal's workspaces may lie.
    pub workspaces: Arc<dyn WorkspaceRoots>,
    /// Files of the workspace whose text goes into every context, once a person has endorsed it.
    pub project_files: Vec<String>,
    /// Directories and remotes whose files are the user's own, as the operator says.
    pub trusted: TrustedTrees,
    /// Directories outside of the workspace that programs may read.
    pub programs_read: Vec<PathBuf>,
    /// What runs hooks; [`NoHooks`](crate::NoHooks) where there are no plugins.
    pub hooks: Arc<dyn HookRunner>,
    /// Told when a run is over or given up by this process, so that what runs beside it can end. Must not block.
    pub run_ended: Option<RunEnded>,
}

/// Who is told that a run is over.
pub type RunEnded = Arc<dyn Fn(RunId) + Send + Sync>;
