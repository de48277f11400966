//! From a grant and the facts about the host to the exact list of what is done.
//!
//! [`plan`] is pure: the same inputs give the same plan, which prints, is compared by snapshot in the tests and is carried out step by step
//! by `launch`. It never asks for less isolation than the tier promises: what the host cannot give makes it fail.
//!
//! Leaves to others: whether the process should run at all (policy), how a step is done (`launch`), which ids and descriptors are free.

mod build;
mod calls;
mod check;
mod display;
mod filter;
mod room;
mod step;

use std::path::PathBuf;

use palyra_common::SandboxTier;
use serde::{Deserialize, Serialize};

use crate::grant::{Limits, ProxyPorts, TerminalSize};
use crate::host::Cgroups;

pub use build::plan;
pub use check::missing_for;
pub use filter::{CallRule, Condition, Filter, FilterProfile, MemoryFiles, SetGroupId, Sockets, Test};
pub use step::{
    GuestIdentity, InotifyLimits, LandlockRules, Namespace, PathRule, Resource, Right, Scopes, Step, TcpRule,
};

pub(crate) use room::{GUEST_GROUP, GUEST_USER, INOTIFY};

/// What is executed at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A file.
    File {
        /// As asked for; also the first argument of the program.
        name: String,
        /// Where to look, in order, as the guest sees it.
        candidates: Vec<PathBuf>,
    },
    /// The launcher's own checks from inside the sandbox.
    Checks,
}

/// The exact, ordered list of what is done to start one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub(crate) id: String,
    pub(crate) tier: SandboxTier,
    pub(crate) fell_back: Vec<String>,
    pub(crate) identity: GuestIdentity,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) cgroups: Cgroups,
    pub(crate) limits: Limits,
    pub(crate) scratch: Option<PathBuf>,
    /// Directories and files of the host that the guest may write to.
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) room: Vec<Step>,
    /// How many steps of the room depend on the host alone and may be taken before anyone asks.
    pub(crate) ahead: usize,
    pub(crate) guest: Vec<Step>,
    pub(crate) program: Program,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) listeners: Option<ProxyPorts>,
    pub(crate) terminal: Option<TerminalSize>,
}

impl Plan {
    /// The tier the process runs in; tier B where the grant allowed it instead of C.
    #[must_use]
    pub fn tier(&self) -> SandboxTier {
        self.tier
    }

    /// Why the process runs in tier B although C was asked for; empty if it runs in the tier that was.
    #[must_use]
    pub fn fell_back(&self) -> &[String] {
        &self.fell_back
    }

    /// The limits it runs under.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The variables the program sees.
    #[must_use]
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Whether the process gets a terminal, and of what size.
    #[must_use]
    pub fn terminal(&self) -> Option<TerminalSize> {
        self.terminal
    }

    /// Steps taken in the new namespaces, before the guest's process exists.
    #[must_use]
    pub fn room(&self) -> &[Step] {
        &self.room
    }

    /// Steps taken in the guest's process, before the program is executed.
    #[must_use]
    pub fn guest(&self) -> &[Step] {
        &self.guest
    }

    /// Whether the sandbox's first process makes some calls for the guest.
    pub(crate) fn is_supervised(&self) -> bool {
        self.guest.iter().any(|step| matches!(step, Step::Seccomp(profile) if profile.is_supervised()))
    }

    /// Runs the launcher's own checks instead of the program, under otherwise the same plan.
    pub(crate) fn with_checks(mut self) -> Self {
        self.program = Program::Checks;
        self
    }
}

#[cfg(test)]
pub(crate) mod invented;
#[cfg(test)]
#[path = "plan_tests.rs"]
mod plan_tests;
