//! The daemon's handle: it starts the launcher, sends it plans, and starts it anew if it died.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio as ProcessStdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::child::{self, Child};
use super::launcher::{MARK, PROBE, Request, SERVE};
use super::streams::{self, Ends, Stdio};
use super::wire::{self, Event, Received};
use crate::error::SandboxError;
use crate::host::HostFacts;
use crate::plan::Plan;

/// How the launcher is started.
#[derive(Debug, Clone)]
pub struct LauncherOptions {
    /// The binary to execute; it must call `launcher::main_if_asked` first thing in `main`.
    pub binary: PathBuf,
}

impl Default for LauncherOptions {
    /// This very binary.
    fn default() -> Self {
        Self { binary: PathBuf::from("/proc/self/exe") }
    }
}

/// Starts processes in sandboxes. Cheap to clone; the launcher ends with the last clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: LauncherOptions,
    launcher: Mutex<Option<Launcher>>,
}

#[derive(Debug)]
struct Launcher {
    socket: OwnedFd,
    process: std::process::Child,
}

impl Drop for Launcher {
    /// The launcher ends when its socket closes; it is reaped here so that it does not stay a zombie.
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

fn failed(reason: impl std::fmt::Display) -> SandboxError {
    SandboxError::LauncherFailed { reason: reason.to_string() }
}

impl Sandbox {
    /// Starts the launcher.
    pub fn start(options: LauncherOptions) -> Result<Self, SandboxError> {
        let launcher = start_launcher(&options)?;
        Ok(Self { shared: Arc::new(Shared { options, launcher: Mutex::new(Some(launcher)) }) })
    }

    /// What this host can do, by live probes in throw-away processes.
    pub fn host_facts(&self) -> Result<HostFacts, SandboxError> {
        host_facts(&self.shared.options)
    }

    /// Starts a process. When this returns a child, the program was executed; when it fails, nothing was.
    pub async fn spawn(&self, plan: &Plan, stdio: Stdio) -> Result<Child, SandboxError> {
        let (control, ends, since) = self.send(plan, stdio)?;
        let event = child::receive(&control).await?;
        begun(plan, control, ends, since, event)
    }

    /// Starts a process like [`Sandbox::spawn`], waiting on the calling thread.
    pub fn spawn_blocking(&self, plan: &Plan, stdio: Stdio) -> Result<Child, SandboxError> {
        let (control, ends, since) = self.send(plan, stdio)?;
        let event = child::receive_blocking(&control)?;
        begun(plan, control, ends, since, event)
    }

    fn send(&self, plan: &Plan, stdio: Stdio) -> Result<(OwnedFd, Ends, Instant), SandboxError> {
        let ends = streams::open(stdio, plan.terminal()).map_err(failed)?;
        let memory = wire::to_memory(plan).map_err(failed)?;
        let (control, theirs) = wire::pair().map_err(failed)?;
        rustix::io::ioctl_fionbio(&control, true).map_err(failed)?;
        let since = Instant::now();
        let attached = [
            memory.as_fd(),
            theirs.as_fd(),
            ends.guest.input.as_fd(),
            ends.guest.output.as_fd(),
            ends.guest.error.as_fd(),
        ];
        let mut slot = self.shared.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(launcher) = slot.as_ref()
            && wire::send(launcher.socket.as_fd(), &Request::Start, &attached).is_ok()
        {
            return Ok((control, ends, since));
        }
        // It died; its sandboxes died with it. One new attempt, so that a launcher that cannot live is reported and not restarted for ever.
        tracing::warn!("the sandbox launcher has exited; restarting it");
        *slot = None;
        let launcher = slot.insert(start_launcher(&self.shared.options)?);
        wire::send(launcher.socket.as_fd(), &Request::Start, &attached).map_err(failed)?;
        Ok((control, ends, since))
    }
}

fn begun(
    plan: &Plan,
    control: OwnedFd,
    ends: Ends,
    since: Instant,
    event: Option<Received<Event>>,
) -> Result<Child, SandboxError> {
    let Ends { guest, stdin, stdout, stderr, terminal } = ends;
    drop(guest);
    match event {
        Some(Received { message: Event::Started { pid, hidden }, attached }) => Ok(Child {
            id: plan.id.clone(),
            stdin,
            stdout,
            stderr,
            terminal,
            proxy_listeners: attached,
            hidden_sockets: hidden,
            pid,
            control,
            since,
        }),
        Some(Received { message: Event::Failed(failure), .. }) => Err(child::explain(failure, plan)),
        Some(Received { message: Event::Ended(_), .. }) | None => {
            Err(failed("it exited before the program was executed"))
        }
    }
}

fn command(options: &LauncherOptions, mode: &str) -> Command {
    let mut command = Command::new(&options.binary);
    command.arg0(MARK).arg(mode).env_clear();
    palyra_common::restore_file_limit(&mut command);
    command
}

fn start_launcher(options: &LauncherOptions) -> Result<Launcher, SandboxError> {
    let (socket, theirs) = wire::pair().map_err(failed)?;
    let process = command(options, SERVE)
        .stdin(ProcessStdio::from(theirs))
        .stdout(ProcessStdio::null())
        .stderr(ProcessStdio::null())
        .spawn()
        .map_err(|error| failed(format!("cannot execute `{}`: {error}", options.binary.display())))?;
    Ok(Launcher { socket, process })
}

/// What this host can do, by live probes in throw-away processes.
pub fn host_facts(options: &LauncherOptions) -> Result<HostFacts, SandboxError> {
    let output = command(options, PROBE)
        .stdin(ProcessStdio::null())
        .stderr(ProcessStdio::null())
        .output()
        .map_err(|error| failed(format!("cannot execute `{}`: {error}", options.binary.display())))?;
    if !output.status.success() {
        return Err(failed("the probes of the host did not finish"));
    }
    serde_json::from_slice(&output.stdout).map_err(|error: serde_json::Error| failed(io::Error::from(error)))
}
