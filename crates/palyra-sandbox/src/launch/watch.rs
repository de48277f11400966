//! Watching a running sandbox: the limits that the kernel does not enforce, orders to kill, the end.

use std::collections::HashSet;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use palyra_common::SandboxTier;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};

use super::disk::Disks;
use super::first::Inner;
use super::group::Groups;
use super::memory::{self, Meter};
use super::supervisor::Order;
use super::tree;
use super::wire::{self, Ending, Received};
use crate::grant::Owner;
use crate::plan::{GuestIdentity, Plan};
use crate::report::{EndCause, HiddenSockets};
use crate::sys::{self, Patience, Used};

/// How often the limits that the kernel does not enforce are looked at.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// The sandbox's first process is ours.
const OWN_TASKS: u32 = 1;

/// A sandbox whose program runs.
pub(super) struct Begun {
    pub(super) first: Pid,
    pub(super) pidfd: OwnedFd,
    /// To the first process.
    pub(super) inner: OwnedFd,
    pub(super) listeners: Vec<OwnedFd>,
    /// Sockets that are out of the guest's reach.
    pub(super) hidden: HiddenSockets,
    pub(super) host_ids: Owner,
    pub(super) since: Instant,
    /// A room that waits for the next start and is not of this one.
    pub(super) spared: Option<Pid>,
}

/// How a sandbox ended, and what is still to be done about it.
pub(super) struct Watched {
    pub(super) ending: Ending,
    /// The first process, if it is on its way out with nobody left beside it. Waiting for that takes as long as a tenth of a start and need not be waited for.
    pub(super) unreaped: Option<Pid>,
}

/// Watches a running sandbox to its end and kills it if it must; when this returns, nothing of the guest is left.
pub(super) fn watch(plan: &Plan, begun: &Begun, control: &OwnedFd, life: &OwnedFd, groups: Option<&Groups>) -> Watched {
    let limits = &plan.limits;
    let mut used = Used::default();
    let mut most = tree::Sample::default();
    let mut cause = EndCause::Finished;
    let mut reported = None;
    let mut whole = None;
    let mut meter = Meter::default();
    let mut disks = Disks::look(&plan.writable);
    let mut tick = TICK;
    loop {
        let left = limits.wall.saturating_sub(begun.since.elapsed());
        // Its first process says nothing after the guest's end, and hangs up a while before its own.
        let speaker = if reported.is_none() { &begun.inner } else { &begun.pidfd };
        let mut polled = [
            PollFd::new(&begun.pidfd, PollFlags::IN),
            PollFd::new(control, PollFlags::IN),
            PollFd::new(life, PollFlags::IN),
            PollFd::new(speaker, PollFlags::IN),
        ];
        // An interrupted or failed wait is only a look at everything ahead of time.
        let _ = rustix::event::poll(&mut polled, Some(&timespec(left.min(tick))));
        let [ended, ordered, orphaned, told] = polled.map(|one| !one.revents().is_empty());
        if ended {
            break;
        }
        if told {
            match wire::receive::<Inner>(begun.inner.as_fd()) {
                Ok(Some(Received { message: Inner::Held(bytes), .. })) => meter.held = bytes,
                Ok(Some(Received { message: Inner::Ended { status, used }, .. })) => {
                    reported = Some(status);
                    whole = used;
                    // The first process is ending, and all others with it. What it waited for has written is known now; looking at anything else would only
                    // hold up the answer.
                    let written = tree::written_by(begun.first).max(disks.taken(limits.written_bytes, &HashSet::new()));
                    most.written_bytes = most.written_bytes.max(written);
                    if written > limits.written_bytes {
                        cause = EndCause::Disk;
                    }
                    if whole.is_some() {
                        break;
                    }
                    continue;
                }
                Ok(Some(Received { message: Inner::Ready(_), .. })) => {}
                // It has ended, as its descriptor is about to say.
                Ok(None) | Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        let guests = tree::guests(begun.spared);
        let mut sample = tree::sample(guests.iter().copied());
        if !plan.cgroups.limits_memory() {
            sample.memory_bytes = meter.used(sample.memory_bytes, limits.memory_bytes, guests.iter().copied());
        }
        sample.written_bytes = sample.written_bytes.max(disks.taken(limits.written_bytes, &guests));
        most = tree::Sample {
            processes: most.processes.max(sample.processes),
            memory_bytes: most.memory_bytes.max(sample.memory_bytes),
            cpu: most.cpu.max(sample.cpu),
            written_bytes: most.written_bytes.max(sample.written_bytes),
        };
        tick = memory::tick(sample.memory_bytes, limits.memory_bytes, TICK).min(memory::tick(
            sample.written_bytes,
            limits.written_bytes,
            TICK,
        ));
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
        } else if !plan.cgroups.limits_processes() && sample.processes > limits.processes.saturating_add(OWN_TASKS) {
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
    }
    let status = match whole {
        Some(whole) => {
            used = whole;
            reported
        }
        None => {
            let (status, rest) = reap(plan, begun, cause, reported);
            used.cpu += rest.cpu;
            used.largest = used.largest.max(rest.largest);
            status
        }
    };
    let counted = groups.map(Groups::counted).unwrap_or_default();
    if cause == EndCause::Finished {
        cause = natural_cause(status, counted.memory_kills, used, plan);
    }
    let ending = Ending {
        status,
        cause,
        // What dies with its namespace is not added up by the kernel.
        cpu: used.cpu.max(most.cpu),
        memory_bytes: counted.memory_bytes.unwrap_or(used.largest.max(most.memory_bytes)),
        processes: most.processes.max(1),
        written_bytes: most.written_bytes,
    };
    Watched { ending, unreaped: whole.map(|_| begun.first) }
}

/// Waits for the first process and kills what it left; the guest's status, if it is known or can be learned, and what was used.
fn reap(plan: &Plan, begun: &Begun, cause: EndCause, reported: Option<i32>) -> (Option<i32>, Used) {
    let mut used = Used::default();
    let mut first_status = None;
    if let Ok(Some(waited)) = sys::wait4(Some(begun.first), Patience::Block) {
        used = waited.used;
        first_status = Some(waited.status);
    }
    let status = reported.or_else(|| guest_status(&begun.inner)).or(if cause == EndCause::Finished {
        None
    } else {
        first_status
    });
    let rest = tree::kill_below(private(plan, begun.host_ids), begun.spared);
    used.cpu += rest.cpu;
    used.largest = used.largest.max(rest.largest);
    (status, used)
}

/// Whether the tree needs more memory than it may have. The kernel kills one process of a group; what is left would only wait for it.
fn memory_exceeded(plan: &Plan, groups: Option<&Groups>, sampled: u64) -> bool {
    if plan.cgroups.limits_memory() {
        groups.is_some_and(|groups| groups.counted().memory_kills > 0)
    } else {
        sampled > plan.limits.memory_bytes
    }
}

/// What the sandbox's first process said of the guest before it ended.
fn guest_status(inner: &OwnedFd) -> Option<i32> {
    loop {
        match wire::receive::<Inner>(inner.as_fd()) {
            Ok(Some(received)) => {
                if let Inner::Ended { status, .. } = received.message {
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

/// Whom to kill besides the known descendants: in tier C the kernel has killed everyone, as an ordinary user others would be hit.
fn private(plan: &Plan, owner: Owner) -> Option<Owner> {
    (plan.identity == GuestIdentity::Private && plan.tier == SandboxTier::B).then_some(owner)
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: duration.subsec_nanos().into() }
}
