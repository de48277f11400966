//! The same names where there is no mechanism: everything that would start a process says so.
//!
//! The types have no values, so that code written for Linux compiles and cannot be reached.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use palyra_common::{Digest, SandboxTier};
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::grant::TerminalSize;
use crate::host::HostFacts;
use crate::plan::Plan;
use crate::report::ExitReport;

/// Does nothing: no binary is a launcher here.
pub fn main_if_asked() {}

/// How the launcher would be started.
#[derive(Debug, Clone, Default)]
pub struct LauncherOptions {
    /// The binary that would be executed.
    pub binary: PathBuf,
}

/// One standard stream.
#[derive(Debug, Default)]
pub enum Stream {
    /// Nothing.
    #[default]
    Null,
    /// A pipe.
    Pipe,
}

/// The three standard streams.
#[derive(Debug, Default)]
pub struct Stdio {
    /// Standard input.
    pub stdin: Stream,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
}

impl Stdio {
    /// Pipes for all three.
    #[must_use]
    pub fn pipes() -> Self {
        Self { stdin: Stream::Pipe, stdout: Stream::Pipe, stderr: Stream::Pipe }
    }
}

/// Has no value here.
#[derive(Debug, Clone)]
pub struct Sandbox(Infallible);

impl Sandbox {
    /// Fails: there is no sandbox on this platform.
    pub fn start(_options: LauncherOptions) -> Result<Self, SandboxError> {
        Err(SandboxError::Unsupported)
    }

    /// Cannot be reached.
    pub fn host_facts(&self) -> Result<HostFacts, SandboxError> {
        match self.0 {}
    }

    /// Cannot be reached.
    pub async fn spawn(&self, _plan: &Plan, _stdio: Stdio) -> Result<Child, SandboxError> {
        match self.0 {}
    }

    /// Cannot be reached.
    pub fn spawn_blocking(&self, _plan: &Plan, _stdio: Stdio) -> Result<Child, SandboxError> {
        match self.0 {}
    }
}

/// Has no value here.
#[derive(Debug)]
pub struct Child(Infallible);

impl Child {
    /// Cannot be reached.
    pub async fn wait(&mut self) -> Result<ExitReport, SandboxError> {
        match self.0 {}
    }

    /// Cannot be reached.
    pub fn wait_blocking(&mut self) -> Result<ExitReport, SandboxError> {
        match self.0 {}
    }

    /// Cannot be reached.
    pub fn kill(&self) {
        match self.0 {}
    }

    /// Cannot be reached.
    pub fn resize(&self, _size: TerminalSize) -> Result<(), SandboxError> {
        match self.0 {}
    }
}

/// Fails: there is nothing to probe on this platform.
pub fn host_facts(_options: &LauncherOptions) -> Result<HostFacts, SandboxError> {
    Err(SandboxError::Unsupported)
}

/// What a proof depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofKey {
    /// Release of the kernel.
    pub kernel: String,
    /// Digest of the binary.
    pub binary: Digest,
    /// Rights the daemon ran with.
    pub uid: u32,
}

impl ProofKey {
    /// Fails: nothing can be proved on this platform.
    pub fn of(_host: &HostFacts, _binary: &Path) -> Result<Self, SandboxError> {
        Err(SandboxError::Unsupported)
    }
}

/// One thing that must be denied, and whether it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name.
    pub name: String,
    /// Whether it was denied.
    pub held: bool,
    /// What happened.
    pub detail: String,
}

/// The outcome of the battery for one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofReport {
    /// The tier.
    pub tier: SandboxTier,
    /// Every check.
    pub checks: Vec<Check>,
}

impl ProofReport {
    /// Fails: nothing holds on this platform.
    pub fn require(&self) -> Result<(), SandboxError> {
        Err(SandboxError::Unsupported)
    }
}

/// Cannot be reached.
pub fn prove(
    sandbox: &Sandbox,
    _host: &HostFacts,
    _tier: SandboxTier,
    _directory: &Path,
) -> Result<ProofReport, SandboxError> {
    match sandbox.0 {}
}

/// Nothing to do where no launcher runs.
///
/// # Errors
/// Never.
pub fn close_on_exec_from(_: u32) -> std::io::Result<()> {
    Ok(())
}
