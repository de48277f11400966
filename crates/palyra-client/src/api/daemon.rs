//! Control of the daemon process itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer to a request to stop: the daemon finishes what it journals and then exits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopDaemonResponse {
    /// The process that is about to exit, so that a caller can wait for it.
    pub pid: u32,
    /// Runs that were not terminal; they go on after the next start.
    pub unfinished_runs: u64,
}
