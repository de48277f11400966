//! What the operator decided about processes.

use std::path::PathBuf;
use std::time::Duration;

use palyra_common::SandboxTier;
use palyra_egress::{CredentialBinding, PrivateHost, Rule};
use palyra_sandbox::Fallback;

/// Resolved options of all process tools.
#[derive(Debug, Clone)]
pub struct ProcessOptions {
    /// The binary that becomes the sandbox launcher; it has to ask for that role first thing in `main`.
    pub launcher: PathBuf,
    /// Where checkpoints and proofs lie.
    pub state: PathBuf,
    /// The tier that processes run in.
    pub tier: SandboxTier,
    /// What to do where the host cannot give it.
    pub fallback: Fallback,
    /// Processor time of a process tree.
    pub cpu: Duration,
    /// Memory of a process tree.
    pub memory_bytes: u64,
    /// Processes and threads of a tree.
    pub processes: u32,
    /// Kept bytes of each output stream, half from the beginning and half from the end.
    pub output_bytes: usize,
    /// Directories outside the workspace that may be read; those that do not exist are passed over.
    pub read_only: Vec<PathBuf>,
    /// Variables that processes inherit or that a call may set, with the daemon's value.
    pub environment: Vec<(String, Option<String>)>,
    /// Palyra's own places, which no process may see.
    pub protected: Vec<PathBuf>,
    /// Hosts that processes may reach; none means no network.
    pub network: Vec<Rule>,
    /// Secrets that the proxy puts into requests to some of them; no process ever sees one.
    pub credentials: Vec<CredentialBinding>,
    /// Hosts with private addresses among them.
    pub private_hosts: Vec<PrivateHost>,
}
