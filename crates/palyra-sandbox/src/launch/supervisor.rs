//! One process per running sandbox that starts it, watches its limits, kills it when it must, and tells the daemon how it ended.
//!
//! It lives outside the sandbox and is not reachable from inside. It serves one sandbox after another, because some of what it needs is slow to
//! get and can be kept: control groups, a private id, user namespaces. The daemon talks to it over a socket of its own; when that socket or the
//! launcher goes away, the sandbox dies. It leaves the guest's own set-up to `setup` and the first process of tier C to `first`.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use palyra_common::SandboxTier;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::SeekFrom;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::first::{self, Go, Inner, Preparation};
use super::group::{self, Groups};
use super::launcher::Request;
use super::namespace::{Namespaces, Taken, linux_flag};
use super::setup::{Context, Failure, Filters, Standards};
use super::tree;
use super::wire::{self, Ending, Event};
use crate::grant::Owner;
use crate::plan::{GuestIdentity, Namespace, Plan};
use crate::report::EndCause;
use crate::sys::{self, Forked, Patience, Used};

/// How often the limits that the kernel does not enforce are looked at.
const TICK: Duration = Duration::from_millis(50);
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

    /// When this returns, no process of the sandbox and no directory of it is left.
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
                report(control, &Event::Started { pid: begun.first.as_raw_nonzero().get() }, &listeners);
                // The daemon has its own; ours would keep the ports open after it let go.
                drop(listeners);
                begun.spared = spared;
                Ok(Event::Ended(watch(&plan, &begun, control, &self.launcher, self.groups.as_ref())))
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
        let since = Instant::now();
        let first = match sys::fork(flags(&Preparation::of(plan, host_ids))).map_err(failed("namespaces"))? {
            Forked::Child => {
                drop(ready);
                first::restricted(plan, context, File::from(announce))
            }
            Forked::Parent(pid) => pid,
        };
        // Our copies of the guest's pipes would keep them open after its end.
        drop((context, announce));
        let pidfd =
            rustix::process::pidfd_open(first, PidfdFlags::empty()).map_err(|error| failed("pidfd")(error.into()))?;
        executed(ready, control, &self.launcher)?;
        Ok(Begun { first, pidfd, inner: None, listeners: Vec::new(), host_ids, since, spared: None })
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
        let go = Go { enters: user_namespace.is_some(), owners: owners.keys().copied().collect() };
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
        let listeners = if plan.listeners.is_some() {
            match wire::receive::<Inner>(inner.as_fd()).map_err(failed("listen"))? {
                Some(received) if received.message == Inner::Listening => received.attached,
                _ => return Err(died()),
            }
        } else {
            Vec::new()
        };
        Ok(Begun { first, pidfd, inner: Some(inner), listeners, host_ids, since, spared: None })
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

/// Whom to kill besides the known descendants: in tier C the kernel has killed everyone, as an ordinary user others would be hit.
fn private(plan: &Plan, owner: Owner) -> Option<Owner> {
    (plan.identity == GuestIdentity::Private && plan.tier == SandboxTier::B).then_some(owner)
}

/// The daemon may be gone; then nobody wants to know.
fn report(control: &OwnedFd, event: &Event, attached: &[OwnedFd]) {
    let attached: Vec<_> = attached.iter().map(|fd| fd.as_fd()).collect();
    let _ = wire::send(control.as_fd(), event, &attached);
}

/// The private directory of tier B, removed when dropped.
struct Scratch(Option<PathBuf>);

impl Scratch {
    fn make(plan: &Plan, host_ids: Owner) -> Result<Self, Failure> {
        let Some(path) = &plan.scratch else { return Ok(Self(None)) };
        let make = || -> io::Result<()> {
            fs::DirBuilder::new().mode(0o700).create(path)?;
            if plan.identity == GuestIdentity::Private {
                std::os::unix::fs::lchown(path, Some(host_ids.uid), Some(host_ids.gid))?;
            }
            Ok(())
        };
        make().map_err(|error| Failure::new("scratch_directory", path.display().to_string(), &error))?;
        Ok(Self(Some(path.clone())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            remove_tree(path);
        }
    }
}

/// Removes a directory that a guest may have made unreadable; does not follow links.
fn remove_tree(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    open_up(path);
    let _ = fs::remove_dir_all(path);
}

fn open_up(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// A sandbox whose program runs.
struct Begun {
    first: Pid,
    pidfd: OwnedFd,
    /// To the first process of tier C.
    inner: Option<OwnedFd>,
    listeners: Vec<OwnedFd>,
    host_ids: Owner,
    since: Instant,
    /// A room that waits for the next start and is not of this one.
    spared: Option<Pid>,
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
        reason: "the process died while it was set up".to_owned(),
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
            return Err(io::Error::other("the daemon or the launcher went away"));
        }
        if !spoken {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the set-up took too long"));
        }
        let mut piece = [0; 4096];
        match ready.read(&mut piece)? {
            0 => return Ok(text),
            length => text.extend_from_slice(piece.get(..length).unwrap_or_default()),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: duration.subsec_nanos().into() }
}

/// Watches a running sandbox to its end and kills it if it must; when this returns, the first process has been reaped.
fn watch(plan: &Plan, begun: &Begun, control: &OwnedFd, life: &OwnedFd, groups: Option<&Groups>) -> Ending {
    let limits = &plan.limits;
    let mut used = Used::default();
    let mut most = tree::Sample::default();
    let mut cause = EndCause::Finished;
    let mut status = None;
    // In tier C the sandbox's first process is ours.
    let own_tasks = u32::from(plan.tier == SandboxTier::C);
    loop {
        let left = limits.wall.saturating_sub(begun.since.elapsed());
        let mut polled = [
            PollFd::new(&begun.pidfd, PollFlags::IN),
            PollFd::new(control, PollFlags::IN),
            PollFd::new(life, PollFlags::IN),
        ];
        // An interrupted or failed wait is only a look at everything ahead of time.
        let _ = rustix::event::poll(&mut polled, Some(&timespec(left.min(TICK))));
        let [ended, ordered, orphaned] = polled.map(|one| !one.revents().is_empty());
        if ended {
            break;
        }
        let sample = tree::sample(tree::guests(begun.spared));
        most = tree::Sample {
            processes: most.processes.max(sample.processes),
            memory_bytes: most.memory_bytes.max(sample.memory_bytes),
            cpu: most.cpu.max(sample.cpu),
            written_bytes: most.written_bytes.max(sample.written_bytes),
        };
        let exceeded = if ordered {
            match wire::receive::<Order>(control.as_fd()) {
                Ok(Some(_)) => Some(EndCause::Killed),
                _ => Some(EndCause::Abandoned),
            }
        } else if orphaned {
            Some(EndCause::Abandoned)
        } else if left.is_zero() {
            Some(EndCause::WallClock)
        } else if sample.cpu + used.cpu > limits.cpu {
            Some(EndCause::Cpu)
        } else if sample.written_bytes > limits.written_bytes {
            Some(EndCause::Disk)
        } else if !plan.cgroups.limits_processes() && sample.processes > limits.processes.saturating_add(own_tasks) {
            Some(EndCause::Processes)
        } else if memory_exceeded(plan, groups, sample.memory_bytes) {
            Some(EndCause::Memory)
        } else {
            None
        };
        if let Some(found) = exceeded {
            cause = found;
            let _ = rustix::process::kill_process(begun.first, Signal::KILL);
            break;
        }
        // Orphans of tier B that ended; the first process is left for the end.
        if plan.tier == SandboxTier::B && reap_orphans(&mut used, begun.first, &mut status) {
            break;
        }
    }
    if status.is_none()
        && let Ok(Some(waited)) = sys::wait4(Some(begun.first), Patience::Block)
    {
        used.cpu += waited.used.cpu;
        used.largest = used.largest.max(waited.used.largest);
        status = Some(waited.status);
    }
    if plan.tier == SandboxTier::C {
        status =
            begun.inner.as_ref().and_then(guest_status).or(if cause == EndCause::Finished { None } else { status });
    }
    let rest = tree::kill_below(private(plan, begun.host_ids), begun.spared);
    used.cpu += rest.cpu;
    used.largest = used.largest.max(rest.largest);
    let counted = groups.map(Groups::counted).unwrap_or_default();
    if cause == EndCause::Finished {
        cause = natural_cause(status, counted.memory_kills, used, plan);
    }
    Ending {
        status,
        cause,
        // What dies with its namespace is not added up by the kernel.
        cpu: used.cpu.max(most.cpu),
        memory_bytes: counted.memory_bytes.unwrap_or(used.largest.max(most.memory_bytes)),
        processes: most.processes.max(1),
        written_bytes: most.written_bytes,
    }
}

/// Whether the tree needs more memory than it may have. The kernel kills one process of a group; what is left would only wait for it.
fn memory_exceeded(plan: &Plan, groups: Option<&Groups>, sampled: u64) -> bool {
    if plan.cgroups.limits_memory() {
        groups.is_some_and(|groups| groups.counted().memory_kills > 0)
    } else {
        sampled > plan.limits.memory_bytes
    }
}

/// Reaps what ended below; whether the first process was among it.
fn reap_orphans(used: &mut Used, first: Pid, status: &mut Option<i32>) -> bool {
    tree::reap(used, |waited| {
        if waited.pid == first {
            *status = Some(waited.status);
        }
    });
    status.is_some()
}

/// What the sandbox's first process said of the guest before it ended.
fn guest_status(inner: &OwnedFd) -> Option<i32> {
    loop {
        match wire::receive::<Inner>(inner.as_fd()) {
            Ok(Some(received)) => {
                if let Inner::Ended(status) = received.message {
                    return Some(status);
                }
            }
            _ => return None,
        }
    }
}

/// Whether the kernel ended it for a limit.
fn natural_cause(status: Option<i32>, memory_kills: u64, used: Used, plan: &Plan) -> EndCause {
    const KILLED: i32 = 9;
    const CPU_EXCEEDED: i32 = 24;
    const FILE_TOO_LARGE: i32 = 25;
    let signal = status.map_or(KILLED, |status| status & 0x7f);
    let failed = status != Some(0);
    match signal {
        _ if failed && memory_kills > 0 => EndCause::Memory,
        CPU_EXCEEDED => EndCause::Cpu,
        KILLED if used.cpu >= plan.limits.cpu => EndCause::Cpu,
        FILE_TOO_LARGE => EndCause::Disk,
        KILLED if status.is_none() => EndCause::Killed,
        _ => EndCause::Finished,
    }
}
