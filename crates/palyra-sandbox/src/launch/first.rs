//! The first process of a sandbox.
//!
//! It prepares what the guest will see, starts the guest, reaps what nobody else reaps and tells the supervisor how the guest ended. In tier C, and in tier B
//! where the host allows, it is process 1 of its namespace and takes everything else along with its own end. Elsewhere in tier B it is the subreaper of the
//! tree, and kills the tree when the supervisor dies.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::holdings::Holdings;
use super::kernel::Kernel;
use super::setup::{self, Context, Failure, Filters, Standards};
use super::supervised::SupervisedCalls;
use super::supervisor::ANNOUNCED;
use super::syscall::Syscall as _;
use super::tree;
use super::watch::{TICK, timespec};
use super::wire::{self, Received};
use crate::grant::Owner;
use crate::plan::{GuestIdentity, Namespace, Plan, Program, Step};
use crate::prove;
use crate::report::HiddenSockets;
use crate::sys::{self, Forked, Used};

/// From the first process to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Inner {
    /// The room of tier C is ready; the attached sockets listen on the private loopback.
    Ready(HiddenSockets),
    /// So many bytes of memory belong to the sandbox and to none of its processes.
    Held(u64),
    /// The guest ended.
    Ended {
        /// Its raw status.
        status: i32,
        /// What it and everything it started used, if nothing of it is left. Else it ends with this process.
        used: Option<Used>,
    },
}

/// What a room can be made of before anyone asks for it. Equal preparations make equal rooms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Preparation {
    pub(super) identity: GuestIdentity,
    pub(super) namespaces: Vec<Namespace>,
    pub(super) host_ids: Owner,
    pub(super) steps: Vec<Step>,
}

impl Preparation {
    pub(super) fn of(plan: &Plan, host_ids: Owner) -> Self {
        Self {
            identity: plan.identity,
            namespaces: plan.namespaces.clone(),
            host_ids,
            steps: plan.room.iter().take(plan.ahead).cloned().collect(),
        }
    }
}

/// Tells a prepared room what to run. Attached: plan, standard input, output, error, the user namespace if one is entered, one per owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Go {
    pub(super) enters: bool,
    pub(super) owners: Vec<Owner>,
    /// Sockets of the host that are known to lie in shared places.
    pub(super) known_sockets: Vec<PathBuf>,
}

/// The first process of tier B: sets the guest up, starts it and ends with it.
pub(super) fn restricted(plan: &Plan, mut context: Context, inner: &OwnedFd, mut announce: File) -> ! {
    let mut kernel = Kernel::new();
    if let Err(failure) = setup::carry_out(&plan.room, plan.identity, &mut context, &mut kernel) {
        fail(&mut announce, &failure)
    }
    start(plan, context, &mut kernel, inner, announce)
}

/// The first process of tier C: makes the room ready, waits to be told what to run, runs it and reaps.
pub(super) fn isolated(preparation: &Preparation, inner: &OwnedFd, mut announce: File, filters: Arc<Filters>) -> ! {
    let mut kernel = Kernel::new();
    let mut context = Context::bare(preparation.host_ids, filters);
    if let Err(failure) = setup::carry_out(&preparation.steps, preparation.identity, &mut context, &mut kernel) {
        fail(&mut announce, &failure)
    }
    // Nobody asked and nobody will.
    let Ok(Some(received)) = wire::receive::<Go>(inner.as_fd()) else { sys::exit(0) };
    let plan = match unpack(received, &mut context) {
        Ok(plan) => plan,
        Err(error) => fail(&mut announce, &Failure::new("plan", "", &error)),
    };
    let rest = plan.room.get(plan.ahead..).unwrap_or_default();
    if let Err(failure) = setup::carry_out(rest, plan.identity, &mut context, &mut kernel) {
        fail(&mut announce, &failure)
    }
    if let Err(failure) = hand_over(&mut context, inner) {
        fail(&mut announce, &failure)
    }
    start(&plan, context, &mut kernel, inner, announce)
}

/// Starts the guest and waits for its end.
fn start(plan: &Plan, mut context: Context, kernel: &mut Kernel, inner: &OwnedFd, mut announce: File) -> ! {
    let owns_namespace = plan.namespaces.contains(&Namespace::Pid);
    if !owns_namespace && let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        fail(&mut announce, &Failure::new("subreaper", "", &error.into()))
    }
    let private = (plan.identity == GuestIdentity::Private).then_some(context.host_ids);
    let mut calls = None;
    if plan.is_supervised() {
        let (ours, theirs) = match wire::pair() {
            Ok(pair) => pair,
            Err(error) => fail(&mut announce, &Failure::new("socket", "", &error)),
        };
        context.supervisor = Some(theirs);
        calls = Some(SupervisedCalls::promised(ours));
    }
    match sys::fork(0) {
        Err(error) => fail(&mut announce, &Failure::new("fork", "", &error)),
        Ok(Forked::Child) => {
            drop(calls);
            guest(plan, context, &mut Kernel::new(), announce)
        }
        Ok(Forked::Parent(pid)) => {
            drop((context, announce));
            // Where a namespace ends the tree, this process only waits from here on, and needs no rights for that.
            let mut bare = || {
                kernel.bound_capabilities()?;
                kernel.drop_capabilities()?;
                kernel.no_new_privileges()
            };
            if owns_namespace && bare().is_err() {
                sys::exit(1)
            }
            let meter = (!plan.cgroups.limits_memory()).then(|| Holdings::of(plan));
            let held = Held { holdings: meter, calls, next: Instant::now() };
            attend(pid, inner, owns_namespace, private, held)
        }
    }
}

/// What the first process does besides reaping.
struct Held {
    /// Counts memory, where nobody else does.
    holdings: Option<Holdings>,
    calls: Option<SupervisedCalls>,
    /// When to count next; calls come in between.
    next: Instant,
}

impl Held {
    /// Bytes held, if it is time to look and they changed.
    fn changed(&mut self) -> Option<u64> {
        if Instant::now() < self.next {
            return None;
        }
        let changed = self.holdings.as_mut()?.changed(self.calls.as_mut().map(|calls| &mut calls.memory_files));
        self.next = Instant::now() + self.interval();
        changed
    }

    fn interval(&self) -> Duration {
        // Nothing but this bounds what a file in memory takes.
        let files = self.calls.as_ref().is_some_and(|calls| !calls.memory_files.is_empty());
        if files { TICK / 5 } else { TICK }
    }

    /// How long to wait for something to happen.
    fn patience(&self) -> Option<Duration> {
        self.holdings.as_ref().map(|_| self.next.saturating_duration_since(Instant::now()).min(self.interval()))
    }
}

/// Reaps until the guest has ended, and tells how; meanwhile tells what memory is held, if nobody else counts it.
///
/// Where no process namespace ends the tree, this kills it when the supervisor is gone: descendants that lost their parent come to this process. A death signal
/// would not do, because a guest can clear it and its children do not inherit it.
fn attend(guest: Pid, inner: &OwnedFd, owns_namespace: bool, private: Option<Owner>, mut held: Held) -> ! {
    let Ok(events) = sys::child_events() else { sys::exit(1) };
    let mut used = Used::default();
    loop {
        let mut ended = None;
        tree::reap(&mut used, |waited| {
            if waited.pid == guest {
                ended = Some(waited.status);
            }
        });
        if let Some(status) = ended {
            // In a process namespace whoever lost its parent is a child of this process, and nobody comes in from outside.
            let is_alone = owns_namespace && !tree::has_children();
            let ended = Inner::Ended { status, used: is_alone.then_some(used) };
            let _ = wire::send(inner.as_fd(), &ended, &[]);
            sys::exit(0)
        }
        if let Some(bytes) = held.changed() {
            let _ = wire::send(inner.as_fd(), &Inner::Held(bytes), &[]);
        }
        let mut polled = vec![PollFd::new(inner, PollFlags::IN), PollFd::new(&events, PollFlags::IN)];
        polled.extend(
            held.calls
                .as_ref()
                .and_then(SupervisedCalls::descriptor)
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        // An interrupted wait is only a look ahead of time.
        let _ = rustix::event::poll(&mut polled, held.patience().map(timespec).as_ref());
        let ready = |at: usize| polled.get(at).map_or(PollFlags::empty(), PollFd::revents);
        let (supervisor_gone, child_ended, called) = (!ready(0).is_empty(), !ready(1).is_empty(), ready(2));
        drop(polled);
        if let Some(calls) = &mut held.calls {
            calls.serve(called);
        }
        if supervisor_gone {
            if !owns_namespace {
                tree::kill_below(private, None);
            }
            sys::exit(0)
        }
        if child_ended {
            // Only a wake-up; several ends may share one event.
            let _ = rustix::io::read(&events, &mut [0; 1024]);
        }
    }
}

fn unpack(received: Received<Go>, context: &mut Context) -> io::Result<Plan> {
    let Received { message: Go { enters, owners, known_sockets }, attached } = received;
    context.known_sockets = known_sockets;
    let mut attached = attached.into_iter();
    let mut next = || attached.next().ok_or_else(|| io::Error::other("a descriptor is missing"));
    let plan = wire::from_memory(next()?)?;
    context.standards = Some(Standards { input: next()?, output: next()?, error: next()? });
    if enters {
        context.user_namespace = Some(next()?);
    }
    for owner in owners {
        context.owners.insert(owner, next()?);
    }
    Ok(plan)
}

fn hand_over(context: &mut Context, inner: &OwnedFd) -> Result<(), Failure> {
    let listeners = std::mem::take(&mut context.listeners);
    let attached: Vec<_> = listeners.iter().map(|fd| fd.as_fd()).collect();
    let ready = Inner::Ready(context.hidden.clone());
    wire::send(inner.as_fd(), &ready, &attached).map_err(|error| Failure::new("hand_over", "", &error))
}

fn guest(plan: &Plan, mut context: Context, kernel: &mut Kernel, mut announce: File) -> ! {
    if plan.program == Program::Checks {
        checks(plan, context, kernel, announce)
    }
    let mut pipe = match announce.try_clone() {
        Ok(pipe) => pipe,
        Err(error) => fail(&mut announce, &Failure::new("pipe", "", &error)),
    };
    let failure = setup::enter(plan, &mut context, kernel, &mut || pipe.write_all(&[ANNOUNCED]));
    fail(&mut announce, &failure)
}

/// Runs the launcher's own checks with everything in place that a program would find.
fn checks(plan: &Plan, mut context: Context, kernel: &mut Kernel, mut announce: File) -> ! {
    if let Err(failure) = setup::carry_out(&plan.guest, plan.identity, &mut context, kernel) {
        fail(&mut announce, &failure)
    }
    if announce.write_all(&[ANNOUNCED]).is_err() || sys::close_from(3).is_err() {
        sys::exit(1)
    }
    // The descriptors behind these are closed; dropping them would close whatever has their number next.
    std::mem::forget((context, announce));
    sys::exit(prove::inside::run(&plan.arguments))
}

fn fail(announce: &mut File, failure: &Failure) -> ! {
    if let Ok(text) = serde_json::to_vec(failure) {
        let _ = announce.write_all(&text);
    }
    sys::exit(1)
}
