//! Processes that cannot get out: tiers B and C.
//!
//! A [`Grant`] says what a process may do, [`HostFacts`] what the host can do. [`plan`] makes of both the exact, printable list of what is done;
//! [`Sandbox`] carries it out without any external program and gives back a [`Child`]. [`prove`] tries to break out of a sandbox on the real
//! host, [`explain`] says what each tier gives there and what it cannot give.
//!
//! - **Tier B** restricts a process: no new privileges, Landlock, a filter of system calls, resource limits, an empty environment.
//! - **Tier C** adds namespaces of its own (users, mounts, processes, network, IPC, host name) and a minimal read-only root.
//!
//! Linux only; elsewhere everything that would start a process answers `unsupported_sandbox`.

mod error;
mod explain;
mod grant;
mod host;
mod plan;
mod report;

#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod prove;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use error::{PlanError, SandboxError};
pub use explain::{Explanation, TierExplanation, explain};
pub use grant::{
    Access, Fallback, Grant, Invocation, Limits, Network, Owner, Place, PlaceKind, ProxyPorts, Share, TerminalSize,
};
pub use host::{Ability, Cgroups, HostFacts, Privilege, SystemPath, SystemPathKind};
pub use plan::{
    CallRule, Condition, Filter, FilterProfile, GuestIdentity, InotifyLimits, LandlockRules, MemoryFiles, Namespace,
    PathRule, Plan, Program, Resource, Right, Scopes, SetGroupId, Sockets, Step, TcpRule, Test, missing_for, plan,
};
pub use report::{EndCause, Exit, ExitReport, HiddenSockets, Usage};

#[cfg(target_os = "linux")]
pub use launch::{Child, LauncherOptions, Sandbox, Stdio, Stream, host_facts, main_if_asked};
#[cfg(target_os = "linux")]
pub use prove::{Check, ProofKey, ProofReport, prove};
#[cfg(target_os = "linux")]
pub use sys::close_on_exec_from;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{
    Check, Child, LauncherOptions, ProofKey, ProofReport, Sandbox, Stdio, Stream, close_on_exec_from, host_facts,
    main_if_asked, prove,
};
