//! From configuration, which is what an operator wrote, to options, which are what the parts take.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use palyra_agent::RunLimits;
use palyra_common::config::Config;
use palyra_common::paths::{self, ConfigSearch};
use palyra_common::{Clock, Environment};
use palyra_identity::RateOptions;
use palyra_journal::{FaultInjector, JournalOptions};
use palyra_policy::PolicySources;
use palyra_tools::ToolLimits;

/// Palyra's own places: its state, and everywhere it looks for its configuration, whether or not there is a file yet.
pub(crate) fn protected(state_root: &Path, environment: &Environment) -> Vec<PathBuf> {
    let mut places = vec![state_root.to_owned()];
    match paths::config_search(environment) {
        ConfigSearch::Named(file) => places.push(file),
        ConfigSearch::Places(files) => places.extend(files),
    }
    places
}

/// How the journal is opened.
pub(crate) fn journal(
    config: &Config,
    root: &Path,
    clock: Arc<dyn Clock>,
    faults: Option<Arc<dyn FaultInjector>>,
) -> JournalOptions {
    JournalOptions {
        checkpoint_every: config.journal.checkpoint_every,
        segment_records: config.journal.segment_records,
        inline_payload_bytes: size(config.journal.inline_payload_bytes),
        min_free_bytes: config.journal.min_free_bytes,
        clock,
        projections: crate::dispatch::projections(),
        faults,
        ..JournalOptions::at(root)
    }
}

/// The shipped policies and the operator's own.
pub(crate) fn policy_sources(config: &Config) -> PolicySources {
    let sources = PolicySources::shipped();
    match &config.policy.directory {
        Some(directory) => sources.with_directory(directory),
        None => sources,
    }
}

/// Bounds on a run that asks for no tighter ones.
pub(crate) fn run_limits(config: &Config) -> RunLimits {
    RunLimits {
        max_turns: config.run.max_turns,
        max_tool_calls: config.run.max_tool_calls,
        wall_clock_ms: millis(config.run.wall_clock_seconds),
        expire_after_ms: millis(config.run.expire_after_seconds),
        loop_repeats: config.run.loop_repeats,
        max_parallel: config.tool.max_parallel,
        approval_timeout_ms: millis(config.approval.timeout_seconds),
        compact_at_percent: config.context.compact_at_percent,
    }
}

/// How often a principal may give commands.
pub(crate) fn rates(config: &Config) -> RateOptions {
    // The schema takes no zero.
    let at_least_one = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    RateOptions {
        per_minute: at_least_one(config.rate.per_minute),
        burst: at_least_one(config.rate.burst),
        ..RateOptions::default()
    }
}

/// Bounds on a tool call.
pub(crate) fn tool_limits(config: &Config) -> ToolLimits {
    ToolLimits {
        patch_bytes: size(config.patch.max_bytes),
        patch_files: config.patch.max_files as usize,
        ..ToolLimits::default()
    }
}

/// How long an authenticated connection is kept without a request.
pub(crate) fn idle(config: &Config) -> Duration {
    Duration::from_secs(config.daemon.idle_timeout_seconds)
}

/// How long a tool call may take unless its tool says otherwise.
pub(crate) fn tool_timeout(config: &Config) -> Duration {
    Duration::from_secs(config.tool.timeout_seconds)
}

fn millis(seconds: u64) -> u64 {
    seconds.saturating_mul(1000)
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
