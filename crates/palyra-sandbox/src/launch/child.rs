//! A running process as the daemon sees it.
//!
//! INVARIANT: dropping a child kills its process tree: the supervisor sees its socket close.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::setup::Failure;
use super::streams;
use super::supervisor::Order;
use super::wire::{self, Ending, Event, Received};
use crate::error::SandboxError;
use crate::grant::TerminalSize;
use crate::plan::{Plan, Program, Step};
use crate::report::{EndCause, Exit, ExitReport, HiddenSockets, Usage};

/// A process that was started in a sandbox.
#[derive(Debug)]
pub struct Child {
    /// The invocation's id.
    pub id: String,
    /// Our end of its standard input, if that is a pipe.
    pub stdin: Option<OwnedFd>,
    /// Our end of its standard output, if that is a pipe.
    pub stdout: Option<OwnedFd>,
    /// Our end of its standard error, if that is a pipe.
    pub stderr: Option<OwnedFd>,
    /// Our side of its terminal, if it has one.
    pub terminal: Option<OwnedFd>,
    /// Listening sockets on the sandbox's private loopback, HTTP first, then SOCKS, if the plan has a proxy in tier C.
    pub proxy_listeners: Vec<OwnedFd>,
    /// Sockets of the host that lay in shared directories and are out of its reach.
    pub hidden_sockets: HiddenSockets,
    /// The sandbox's first process, as the host numbers it.
    pub pid: i32,
    pub(super) control: OwnedFd,
    pub(super) since: Instant,
}

impl Child {
    /// Waits for the end of the whole tree.
    pub async fn wait(&mut self) -> Result<ExitReport, SandboxError> {
        let event = receive(&self.control).await?;
        self.report(event)
    }

    /// Waits like [`Child::wait`], on the calling thread.
    pub fn wait_blocking(&mut self) -> Result<ExitReport, SandboxError> {
        let event = receive_blocking(&self.control)?;
        self.report(event)
    }

    /// Kills the whole tree; [`Child::wait`] tells when it is gone. Killing what has ended is not an error.
    pub fn kill(&self) {
        // A supervisor that is gone has no tree left.
        let _ = wire::send(self.control.as_fd(), &Order::Kill, &[]);
    }

    /// Changes the size of the terminal, if there is one.
    pub fn resize(&self, size: TerminalSize) -> Result<(), SandboxError> {
        match &self.terminal {
            None => Ok(()),
            Some(master) => streams::resize(master, size).map_err(|error| SandboxError::LauncherFailed {
                reason: format!("cannot resize the terminal: {error}"),
            }),
        }
    }

    fn report(&self, event: Option<Received<Event>>) -> Result<ExitReport, SandboxError> {
        match event.map(|received| received.message) {
            Some(Event::Ended(ending)) => Ok(report(&ending, self.since)),
            _ => Err(SandboxError::Lost),
        }
    }
}

fn report(ending: &Ending, since: Instant) -> ExitReport {
    const KILLED: i32 = 9;
    let exit = match ending.cause {
        // Whatever the first process said on its way down, it did not end by itself.
        EndCause::WallClock | EndCause::Killed | EndCause::Abandoned if ending.status.is_none() => Exit::Signal(KILLED),
        _ => ending.status.map_or(Exit::Signal(KILLED), Exit::from_raw),
    };
    let usage = Usage {
        wall: since.elapsed(),
        cpu: ending.cpu,
        memory_bytes: ending.memory_bytes,
        processes: ending.processes,
        written_bytes: ending.written_bytes,
    };
    ExitReport { exit, cause: ending.cause, usage }
}

/// The next event, on whatever runtime polls this.
pub(super) async fn receive(control: &OwnedFd) -> Result<Option<Received<Event>>, SandboxError> {
    let broken = |error: io::Error| SandboxError::LauncherFailed { reason: error.to_string() };
    // The library has no packet socket; its datagram socket waits for a descriptor just as well, and the packets are ours to read.
    let copy = std::os::unix::net::UnixDatagram::from(control.try_clone().map_err(broken)?);
    let watched = UnixDatagram::from_std(copy).map_err(broken)?;
    loop {
        watched.readable().await.map_err(broken)?;
        match watched.try_io(Interest::READABLE, || wire::receive::<Event>(control.as_fd())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result.map_err(broken),
        }
    }
}

/// The next event, on this thread.
pub(super) fn receive_blocking(control: &OwnedFd) -> Result<Option<Received<Event>>, SandboxError> {
    let broken = |error: io::Error| SandboxError::LauncherFailed { reason: error.to_string() };
    loop {
        let mut polled = [PollFd::new(control, PollFlags::IN)];
        match rustix::event::poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(broken(error.into())),
        }
        match wire::receive::<Event>(control.as_fd()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result.map_err(broken),
        }
    }
}

/// What a failed set-up means to the caller.
pub(super) fn explain(failure: Failure, plan: &Plan) -> SandboxError {
    const NO_ENTRY: i32 = 2;
    let program = match &plan.program {
        Program::File { name, .. } => name.clone(),
        Program::Checks => "checks".to_owned(),
    };
    let directory = plan.guest.iter().find_map(|step| match step {
        Step::WorkingDirectory(path) => Some(path.clone()),
        _ => None,
    });
    match (failure.step.as_str(), directory) {
        ("execute", _) if failure.errno == NO_ENTRY => SandboxError::ProgramNotFound { program },
        ("execute", _) => SandboxError::ProgramNotExecutable { program, reason: failure.reason },
        ("working_directory", Some(path)) => SandboxError::WorkingDirectoryUnusable { path, reason: failure.reason },
        (step, _) => {
            let reason = if failure.subject.is_empty() {
                failure.reason
            } else {
                format!("`{}`: {}", failure.subject, failure.reason)
            };
            SandboxError::SetupFailed { step: step.to_owned(), reason }
        }
    }
}
