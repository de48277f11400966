//! One process per running sandbox that starts it, watches its limits, kills it when it must, and tells the daemon how it ended.
//!
//! It lives outside the sandbox and is not reachable from inside. It serves one sandbox after another, because some of what it needs is slow to
//! get and can be kept: control groups, a private id, user namespaces. The daemon talks to it over a socket of its own; when that socket or the
//! launcher goes away, the sandbox dies. It leaves the guest's own set-up to `setup` and the first process of tier C to `first`.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palyra_common::SandboxTier;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::SeekFrom;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::first::{self, Go, Inner, Preparation};
use super::group::{self, Groups};
use super::launcher::Request;
use super::namespace::{Namespaces, Taken, linux_flag};
use super::scratch::Scratch;
use super::setup::{Context, Failure, Filters, Standards};
use super::sockets;
use super::tree;
use super::watch::{Begun, timespec, watch};
use super::wire::{self, Event, Received};
use crate::plan::{GuestIdentity, Namespace, Plan, Step};
use crate::report::HiddenSockets;
use crate::sys::{self, Forked, Patience};

/// A set-up takes milliseconds; one that takes this long will never end.
const SETUP_TIME: Duration = Duration::from_secs(30);
/// How old a room may get before it is used: what is mounted file by file is replaced on the host now and then.
const SPARE_TIME: Duration = Duration::from_secs(60);
/// Written on the way to the program, so that silence means the set-up died.
pub(super) const ANNOUNCED: u8 = 1;

/// From the daemon to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Kill the tree.
    Kill,
}

/// From a supervisor to the launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// It made these control groups and is in them.
    Entered(Vec<PathBuf>),
    /// Its sandbox is gone and told to the daemon; it can take another.
    Done,
}

/// A supervisor: it runs one sandbox after another and keeps what they can share.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// To the launcher; its end is ours.
    launcher: OwnedFd,
    filters: Arc<Filters>,
    namespaces: Namespaces,
    groups: Option<Groups>,
    /// What the last room of tier C was made of: the next one probably is too.
    wanted: Option<Preparation>,
    spare: Option<Prepared>,
    /// The mounts of the present sandbox, let go of after its end was told.
    room: Option<File>,
    /// Its first process, if it is waited for after its end was told.
    unreaped: Option<Pid>,
}

/// The first process of tier C in its namespaces, with a room that is ready but for what is shared.
#[derive(Debug)]
struct Prepared {
    preparation: Preparation,
    first: Pid,
    pidfd: OwnedFd,
    inner: OwnedFd,
    ready: OwnedFd,
    /// Changes when the host's mounts do: the room has a copy of what was mounted before.
    mounts: File,
    /// Holds the room's mounts: taking them down takes as long as half a start and need not be waited for.
    room: Option<File>,
    made: Instant,
}

impl Prepared {
    /// Whether it is what a room made now would be.
    fn fits(&self, preparation: &Preparation) -> bool {
        let mut polled = [PollFd::new(&self.mounts, PollFlags::PRI), PollFd::new(&self.pidfd, PollFlags::IN)];
        let untouched = rustix::event::poll(&mut polled, Some(&timespec(Duration::ZERO))) == Ok(0);
        untouched && self.made.elapsed() < SPARE_TIME && self.preparation == *preparation
    }

    fn discard(self) {
        let _ = rustix::process::kill_process(self.first, Signal::KILL);
        let _ = sys::wait4(Some(self.first), Patience::Block);
    }
}

impl Supervisor {
    pub(crate) fn new(launcher: OwnedFd, filters: Arc<Filters>) -> Self {
        Self {
            launcher,
            filters,
            namespaces: Namespaces::default(),
            groups: None,
            wanted: None,
            spare: None,
            room: None,
            unreaped: None,
        }
    }

    /// Serves starts until the launcher is gone.
    pub(crate) fn serve(mut self) {
        // What a guest leaves behind comes to us and not to the host's first process.
        if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
            return;
        }
        while let Ok(Some(received)) = wire::receive::<Request>(self.launcher.as_fd()) {
            let Request::Start = received.message;
            if let Ok([plan, control, input, output, error]) = <[OwnedFd; 5]>::try_from(received.attached) {
                let event =
                    self.start(plan, &control, Standards { input, output, error }).unwrap_or_else(Event::Failed);
                report(&control, &event, &[]);
            }
            self.room = None;
            if let Some(first) = self.unreaped.take() {
                let _ = sys::wait4(Some(first), Patience::Block);
            }
            if wire::send(self.launcher.as_fd(), &Notice::Done, &[]).is_err() {
                break;
            }
            self.stock_up();
        }
        // It is in our control groups, which go next.
        if let Some(spare) = self.spare.take() {
            spare.discard();
        }
    }

    /// Makes the next room ready while nobody waits for it.
    fn stock_up(&mut self) {
        if self.spare.is_none()
            && let Some(preparation) = self.wanted.clone()
        {
            // Without a spare the next start only takes longer, and tells what is wrong.
            self.spare = self.prepare(preparation).ok();
        }
    }

    fn prepare(&self, preparation: Preparation) -> Result<Prepared, Failure> {
        let failed = |step: &'static str| move |error: io::Error| Failure::new(step, "", &error);
        let mounts = File::open("/proc/self/mountinfo").map_err(failed("mounts"))?;
        let (ready, announce) = pipe()?;
        let (inner, inner_end) = wire::pair().map_err(failed("socket"))?;
        let first = match sys::fork(flags(&preparation)).map_err(failed("namespaces"))? {
            Forked::Child => {
                drop((ready, inner));
                first::isolated(&preparation, &inner_end, File::from(announce), Arc::clone(&self.filters))
            }
            Forked::Parent(pid) => pid,
        };
        let pidfd =
            rustix::process::pidfd_open(first, PidfdFlags::empty()).map_err(|error| failed("pidfd")(error.into()))?;
        let room = File::open(format!("/proc/{}/ns/mnt", first.as_raw_nonzero())).ok();
        Ok(Prepared { preparation, first, pidfd, inner, ready, mounts, room, made: Instant::now() })
    }

    /// When this returns, no process of the guest and no directory of the sandbox is left.
    fn start(&mut self, plan: OwnedFd, control: &OwnedFd, standards: Standards) -> Result<Event, Failure> {
        let failed = |step: &'static str| move |error: io::Error| Failure::new(step, "", &error);
        let text = plan.try_clone().map_err(failed("plan"))?;
        let plan: Plan = wire::from_memory(plan).map_err(failed("plan"))?;
        let taken = self.namespaces.take(&plan).map_err(failed("user_namespace"))?;
        self.enter_groups(&plan).map_err(failed("control_group"))?;
        let _scratch = Scratch::make(&plan, taken.host_ids)?;
        let begun = match plan.tier {
            SandboxTier::C => self.begin_isolated(&plan, &text, taken, standards, control),
            _ => self.begin_restricted(&plan, taken, standards, control),
        };
        let spared = self.spare.as_ref().map(|spare| spare.first);
        match begun {
            Err(failure) => {
                tree::kill_below(None, spared);
                Err(failure)
            }
            Ok(mut begun) => {
                let listeners = std::mem::take(&mut begun.listeners);
                let (pid, hidden) = (begun.first.as_raw_nonzero().get(), std::mem::take(&mut begun.hidden));
                report(control, &Event::Started { pid, hidden }, &listeners);
                // The daemon has its own; ours would keep the ports open after it let go.
                drop(listeners);
                begun.spared = spared;
                let watched = watch(&plan, &begun, control, &self.launcher, self.groups.as_ref());
                self.unreaped = watched.unreaped;
                Ok(Event::Ended(watched.ending))
            }
        }
    }

    /// Starts the first process of tier B and waits until the program was executed.
    fn begin_restricted(
        &self,
        plan: &Plan,
        taken: Taken,
        standards: Standards,
        control: &OwnedFd,
    ) -> Result<Begun, Failure> {
        let failed = |step: &'static str| move |error: io::Error| Failure::new(step, "", &error);
        let host_ids = taken.host_ids;
        let mut context = Context::bare(host_ids, Arc::clone(&self.filters));
        context.owners = taken.owners;
        context.standards = Some(standards);
        let (ready, announce) = pipe()?;
        let (inner, inner_end) = wire::pair().map_err(failed("socket"))?;
        let since = Instant::now();
        let first = match sys::fork(flags(&Preparation::of(plan, host_ids))).map_err(failed("namespaces"))? {
            Forked::Child => {
                drop((ready, inner));
                first::restricted(plan, context, &inner_end, File::from(announce))
            }
            Forked::Parent(pid) => pid,
        };
        // Our copies of the guest's pipes would keep them open after its end.
        drop((context, announce, inner_end));
        let pidfd =
            rustix::process::pidfd_open(first, PidfdFlags::empty()).map_err(|error| failed("pidfd")(error.into()))?;
        executed(ready, control, &self.launcher)?;
        Ok(Begun {
            first,
            pidfd,
            inner,
            listeners: Vec::new(),
            hidden: HiddenSockets::default(),
            host_ids,
            since,
            spared: None,
        })
    }

    /// Tells a room of tier C, if possible one that is ready, what to run, and waits until the program was executed.
    fn begin_isolated(
        &mut self,
        plan: &Plan,
        text: &OwnedFd,
        taken: Taken,
        standards: Standards,
        control: &OwnedFd,
    ) -> Result<Begun, Failure> {
        let failed = |step: &'static str| move |error: io::Error| Failure::new(step, "", &error);
        let since = Instant::now();
        let preparation = Preparation::of(plan, taken.host_ids);
        let prepared = match self.spare.take() {
            Some(spare) if spare.fits(&preparation) => spare,
            other => {
                if let Some(stale) = other {
                    stale.discard();
                }
                self.prepare(preparation.clone())?
            }
        };
        self.wanted = Some(preparation);
        let Taken { host_ids, user_namespace, owners } = taken;
        let shared = plan.room.iter().filter_map(|step| match step {
            Step::HideSockets { writable, read_only } => Some(writable.iter().chain(read_only).map(PathBuf::as_path)),
            _ => None,
        });
        let known_sockets = sockets::known_below(shared.flatten());
        let go = Go { enters: user_namespace.is_some(), owners: owners.keys().copied().collect(), known_sockets };
        let mut attached =
            vec![text.as_fd(), standards.input.as_fd(), standards.output.as_fd(), standards.error.as_fd()];
        attached.extend(user_namespace.iter().chain(owners.values()).map(|fd| fd.as_fd()));
        rustix::fs::seek(text, SeekFrom::Start(0)).map_err(|error| failed("plan")(error.into()))?;
        let sent = wire::send(prepared.inner.as_fd(), &go, &attached);
        drop(attached);
        drop((standards, user_namespace, owners));
        let Prepared { first, pidfd, inner, ready, room, .. } = prepared;
        self.room = room;
        // A room that failed while it was made has said why, and hears no more.
        executed(ready, control, &self.launcher)?;
        sent.map_err(failed("go"))?;
        let (hidden, listeners) = match wire::receive::<Inner>(inner.as_fd()).map_err(failed("hand_over"))? {
            Some(Received { message: Inner::Ready(hidden), attached }) => (hidden, attached),
            _ => return Err(died()),
        };
        Ok(Begun { first, pidfd, inner, listeners, hidden, host_ids, since, spared: None })
    }

    /// Enters the groups that the plan names, unless it is in them already, and sets their limits.
    fn enter_groups(&mut self, plan: &Plan) -> io::Result<()> {
        if !self.groups.as_ref().is_some_and(|groups| groups.fit(&plan.cgroups)) {
            self.groups = None;
            let groups = Groups::enter(&plan.cgroups, &format!("{}{}", group::PREFIX, std::process::id()))?;
            wire::send(self.launcher.as_fd(), &Notice::Entered(groups.paths()), &[])?;
            self.groups = Some(groups);
        }
        match &mut self.groups {
            Some(groups) => groups.limit(plan),
            None => Ok(()),
        }
    }
}

/// The daemon may be gone; then nobody wants to know.
fn report(control: &OwnedFd, event: &Event, attached: &[OwnedFd]) {
    let attached: Vec<_> = attached.iter().map(|fd| fd.as_fd()).collect();
    let _ = wire::send(control.as_fd(), event, &attached);
}

fn flags(preparation: &Preparation) -> u64 {
    let flag = |namespace: &Namespace| match namespace {
        // As root the namespace was made ahead and is entered by the guest, so that the mounts do not belong to it.
        Namespace::User if preparation.identity == GuestIdentity::Private => 0,
        Namespace::User => linux_flag::NEWUSER,
        Namespace::Mount => linux_flag::NEWNS,
        Namespace::Pid => linux_flag::NEWPID,
        Namespace::Network => linux_flag::NEWNET,
        Namespace::Ipc => linux_flag::NEWIPC,
        Namespace::Uts => linux_flag::NEWUTS,
    };
    preparation.namespaces.iter().map(|namespace| u64::from(flag(namespace))).fold(0, |all, one| all | one)
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| Failure::new("pipe", "", &error.into()))
}

/// Waits until the program was executed, or says why it was not.
fn executed(ready: OwnedFd, control: &OwnedFd, launcher: &OwnedFd) -> Result<(), Failure> {
    let text = read_ready(ready, control, launcher).map_err(|error| Failure::new("set_up", "", &error))?;
    let said = |text: &[u8]| serde_json::from_slice(text).unwrap_or_else(|_| died());
    match text.split_first() {
        Some((&ANNOUNCED, [])) => Ok(()),
        Some((&ANNOUNCED, failure)) => Err(said(failure)),
        _ => Err(said(&text)),
    }
}

fn died() -> Failure {
    Failure {
        step: "set_up".to_owned(),
        subject: String::new(),
        errno: 0,
        reason: "the process died during setup".to_owned(),
    }
}

/// Everything the set-up says until its end of the pipe is closed.
fn read_ready(ready: OwnedFd, control: &OwnedFd, life: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut ready = File::from(ready);
    let mut text = Vec::new();
    let deadline = Instant::now() + SETUP_TIME;
    loop {
        let mut polled = [
            PollFd::new(&ready, PollFlags::IN),
            PollFd::new(control, PollFlags::RDHUP),
            PollFd::new(life, PollFlags::IN),
        ];
        let left = deadline.saturating_duration_since(Instant::now());
        rustix::event::poll(&mut polled, Some(&timespec(left)))?;
        let [spoken, control, life] = polled.map(|one| !one.revents().is_empty());
        if !spoken && (control || life) {
            return Err(io::Error::other("the daemon or the launcher exited"));
        }
        if !spoken {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "setup took too long"));
        }
        let mut piece = [0; 4096];
        match ready.read(&mut piece)? {
            0 => return Ok(text),
            length => text.extend_from_slice(piece.get(..length).unwrap_or_default()),
        }
    }
}
