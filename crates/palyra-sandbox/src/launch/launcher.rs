//! The launcher: our own binary, executed anew with a single thread, an empty environment and one socket.
//!
//! It forks supervisors and hands starts on to them, one at a time to each; a supervisor that is done serves the next. Being small and
//! single-threaded, it can fork and go on in ordinary Rust, and a start does not pay for executing a large binary.
//!
//! INVARIANT: it lives exactly as long as the daemon's end of the socket. It does not ask for a signal at its parent's death, because that
//! signal comes when the *thread* that started it ends.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::bpf;
use super::group;
use super::setup::{Failure, Filters};
use super::supervisor::{Notice, Supervisor};
use super::tree;
use super::wire::{self, Event};
use crate::plan::FilterProfile;
use crate::sys::{self, Forked, Patience};

/// Supervisors kept for later starts; each holds a few descriptors and half a megabyte.
const IDLE: usize = 4;

/// First argument that makes a binary the launcher.
pub(crate) const MARK: &str = "palyra-sandbox-launcher";
/// Second argument: serve starts over standard input.
pub(crate) const SERVE: &str = "serve";
/// Second argument: probe the host and print the facts.
pub(crate) const PROBE: &str = "probe";

/// From the daemon to the launcher, and on to a supervisor. Attached to `Start`: plan, control socket, standard input, output, error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Start a sandbox.
    Start,
}

/// Becomes the launcher if this process was executed as one; else returns.
///
/// Every binary that starts sandboxes calls this first thing in `main`, before it makes threads or reads its arguments.
pub fn main_if_asked() {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != MARK) {
        return;
    }
    let code = match arguments.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some(SERVE) => i32::from(serve().is_err()),
        Some(PROBE) => i32::from(probe().is_err()),
        _ => 2,
    };
    std::process::exit(code)
}

fn probe() -> io::Result<()> {
    sys::close_from(3)?;
    let facts = crate::probe::facts()?;
    println!("{}", serde_json::to_string(&facts)?);
    Ok(())
}

/// Whether a supervisor can take a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Busy,
}

/// A supervisor, as the launcher knows it.
struct Known {
    socket: OwnedFd,
    pidfd: OwnedFd,
    state: State,
    /// Control groups to remove, should it die without doing so.
    groups: Vec<PathBuf>,
}

struct Launcher {
    /// To the daemon; `None` in a forked supervisor, which must not hold it.
    socket: Option<OwnedFd>,
    filters: Arc<Filters>,
    known: HashMap<Pid, Known>,
}

fn serve() -> io::Result<()> {
    let socket = rustix::stdio::stdin().try_clone_to_owned()?;
    let null: OwnedFd = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?.into();
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    if !sys::single_threaded()? {
        return Err(io::Error::other("the launcher must have a single thread"));
    }
    rustix::process::chdir("/")?;
    rustix::process::setsid()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let mut filters = Filters::new();
    for profile in FilterProfile::all() {
        filters.insert(profile, bpf::compile(profile)?);
    }
    Launcher { socket: Some(socket), filters: Arc::new(filters), known: HashMap::new() }.run()
}

impl Launcher {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let Some(socket) = &self.socket else { return Ok(()) };
            let mut polled = vec![PollFd::new(socket, PollFlags::IN)];
            for known in self.known.values() {
                polled.push(PollFd::new(&known.pidfd, PollFlags::IN));
                polled.push(PollFd::new(&known.socket, PollFlags::IN));
            }
            match rustix::event::poll(&mut polled, None) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let mut answers = polled.iter().map(|one| !one.revents().is_empty());
            let asked = answers.next().unwrap_or(false);
            let noticed: Vec<(bool, bool)> = std::iter::from_fn(|| Some((answers.next()?, answers.next()?))).collect();
            let ended = noticed.iter().any(|(ended, _)| *ended);
            let spoken: Vec<Pid> = self
                .known
                .keys()
                .copied()
                .zip(&noticed)
                .filter(|(_, (_, spoken))| *spoken)
                .map(|(pid, _)| pid)
                .collect();
            drop(polled);
            // What supervisors said before they ended comes first: it may name groups that have to be removed.
            spoken.into_iter().for_each(|pid| self.listen(pid));
            if ended {
                self.reap();
            }
            if asked && !self.serve_one()? {
                // The daemon is gone. Supervisors see the end of their own sockets.
                return Ok(());
            }
        }
    }

    /// Serves one request; false if there will be no more.
    fn serve_one(&mut self) -> io::Result<bool> {
        // Forked before the request is taken: its descriptors would stay open in the new process and keep the guest's pipes from ending.
        let ready = self.idle().map_or_else(|| self.fork(), Ok);
        let Some(socket) = &self.socket else { return Ok(false) };
        let Some(received) = wire::receive::<Request>(socket.as_fd())? else { return Ok(false) };
        let attached: Vec<_> = received.attached.iter().map(|fd| fd.as_fd()).collect();
        let Some(control) = attached.get(1) else { return Ok(true) };
        let handed = ready.and_then(|pid| self.hand_on(pid, received.message, &attached));
        if let Err(error) = handed {
            let failure = Failure::new("supervisor", "", &error);
            let _ = wire::send(*control, &Event::Failed(failure), &[]);
        }
        Ok(true)
    }

    /// A supervisor that has nothing to do.
    fn idle(&self) -> Option<Pid> {
        self.known.iter().find(|(_, known)| known.state == State::Idle).map(|(pid, _)| *pid)
    }

    /// Gives a start to a supervisor.
    fn hand_on(&mut self, pid: Pid, request: Request, attached: &[BorrowedFd<'_>]) -> io::Result<()> {
        match self.known.get_mut(&pid) {
            Some(known) => {
                known.state = State::Busy;
                wire::send(known.socket.as_fd(), &request, attached)
            }
            None => Err(io::Error::other("the supervisor has exited")),
        }
    }

    fn fork(&mut self) -> io::Result<Pid> {
        let (socket, theirs) = wire::pair()?;
        match sys::fork(0)? {
            Forked::Child => {
                // Nothing of the launcher's may stay open here: others wait for it to be closed.
                self.socket = None;
                self.known.clear();
                drop(socket);
                Supervisor::new(theirs, Arc::clone(&self.filters)).serve();
                sys::exit(0)
            }
            Forked::Parent(pid) => match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
                Ok(pidfd) => {
                    self.known.insert(pid, Known { socket, pidfd, state: State::Busy, groups: Vec::new() });
                    Ok(pid)
                }
                Err(error) => {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                    let _ = sys::wait4(Some(pid), Patience::Block);
                    Err(error.into())
                }
            },
        }
    }

    fn listen(&mut self, pid: Pid) {
        let idle = self.known.values().filter(|known| known.state == State::Idle).count();
        let Some(known) = self.known.get_mut(&pid) else { return };
        // One that is ending says nothing any more; its descriptor tells.
        let Ok(Some(received)) = wire::receive::<Notice>(known.socket.as_fd()) else { return };
        match received.message {
            Notice::Entered(groups) => known.groups = groups,
            Notice::Done if idle < IDLE => known.state = State::Idle,
            // It ends when it sees that we hung up, and is reaped then.
            Notice::Done => {
                let _ = rustix::net::shutdown(&known.socket, rustix::net::Shutdown::Both);
            }
        }
    }

    fn reap(&mut self) {
        let ended: Vec<Pid> = self
            .known
            .keys()
            .copied()
            .filter(|pid| matches!(sys::wait4(Some(*pid), Patience::Poll), Ok(Some(_))))
            .collect();
        let groups: Vec<PathBuf> =
            ended.iter().filter_map(|pid| self.known.remove(pid)).flat_map(|known| known.groups).collect();
        self.kill_strays();
        for path in groups.iter().filter(|path| path.exists()) {
            group::remove(path);
        }
    }

    /// A supervisor that was killed from outside leaves its sandbox to us.
    fn kill_strays(&mut self) {
        let own = rustix::process::getpid();
        loop {
            let strays: Vec<Pid> =
                tree::children(own).into_iter().filter(|pid| !self.known.contains_key(pid)).collect();
            if strays.is_empty() {
                return;
            }
            for stray in strays {
                for pid in tree::descendants(stray).into_iter().chain([stray]) {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
                let _ = sys::wait4(Some(stray), Patience::Block);
            }
        }
    }
}
