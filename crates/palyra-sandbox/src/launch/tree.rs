//! The processes below a process: counting what they use, and killing them all.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::memory;
use crate::grant::Owner;
use crate::sys::{self, Forked, Patience, Used};

/// What a tree uses at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Processes and threads.
    pub(crate) processes: u32,
    /// Processor time, with that of descendants that were waited for.
    pub(crate) cpu: Duration,
    /// Memory that is not backed by a file on disk; shared memory is counted in each process.
    pub(crate) memory_bytes: u64,
    /// Bytes written to disk, with those of descendants that were waited for.
    pub(crate) written_bytes: u64,
}

/// All processes below one, not counting itself.
pub(crate) fn descendants(of: Pid) -> HashSet<Pid> {
    let mut found = HashSet::new();
    let mut ahead = vec![of];
    while let Some(pid) = ahead.pop() {
        for child in children(pid) {
            if found.insert(child) {
                ahead.push(child);
            }
        }
    }
    found
}

/// All processes below this one but a prepared room.
pub(crate) fn guests(spared: Option<Pid>) -> HashSet<Pid> {
    let own = rustix::process::getpid();
    let mut found = descendants(own);
    found.retain(|pid| Some(*pid) != spared);
    found
}

/// The processes directly below one.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else { return Vec::new() };
    let texts = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    texts.flat_map(|text| text.split_whitespace().filter_map(parse).collect::<Vec<_>>()).collect()
}

fn parse(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

/// Adds up what the processes use.
pub(crate) fn sample(processes: impl IntoIterator<Item = Pid>) -> Sample {
    let mut sum = Sample::default();
    for pid in processes {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{}/{name}", pid.as_raw_nonzero())).unwrap_or_default();
        let stat = read("stat");
        sum.processes = sum.processes.saturating_add(threads(&stat));
        sum.cpu += processor_time(&stat);
        sum.memory_bytes = sum.memory_bytes.saturating_add(memory::resident(pid));
        sum.written_bytes = sum.written_bytes.saturating_add(written_by(pid));
    }
    sum
}

/// User and system time of a process and of its reaped children; the kernel counts in hundredths of a second for every program.
fn processor_time(stat: &str) -> Duration {
    // The name may contain anything; what counts follows its last parenthesis.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = fields.split_whitespace().skip(11).take(4).filter_map(|text| text.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks.saturating_mul(10))
}

/// Threads of a process; a process that is gone has none.
fn threads(stat: &str) -> u32 {
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_whitespace().nth(17).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Bytes that a process has written to disk, with those of descendants that it waited for.
pub(crate) fn written_by(pid: Pid) -> u64 {
    let io = fs::read_to_string(format!("/proc/{}/io", pid.as_raw_nonzero())).unwrap_or_default();
    let field =
        |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    field("write_bytes:").saturating_sub(field("cancelled_write_bytes:"))
}

/// Kills everything below this process and reaps it; this process must be the reaper of its descendants.
///
/// Stopping first keeps a tree that forks as fast as it dies from outrunning the list.
/// A prepared room without a guest is spared.
pub(crate) fn kill_below(private: Option<Owner>, spared: Option<Pid>) -> Used {
    let mut used = Used::default();
    loop {
        reap(&mut used, |_| {});
        if spared.is_none() && !has_children() {
            return used;
        }
        let alive = guests(spared);
        if alive.is_empty() {
            return used;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &alive {
                // A process that is gone already is what we want.
                let _ = rustix::process::kill_process(*pid, signal);
            }
        }
        if let Some(owner) = private {
            kill_as(owner);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether there is anything to wait for; cheaper than looking for it.
pub(crate) fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

/// Reaps every descendant that has ended.
pub(crate) fn reap(used: &mut Used, mut each: impl FnMut(&sys::Waited)) {
    while let Ok(Some(waited)) = sys::wait4(None, Patience::Poll) {
        used.cpu += waited.used.cpu;
        used.largest = used.largest.max(waited.used.largest);
        each(&waited);
    }
}

/// Kills everything that runs under a private id, wherever it hides.
fn kill_as(owner: Owner) {
    use super::syscall::Syscall as _;
    match sys::fork(0) {
        Ok(Forked::Child) => {
            let became = super::kernel::Kernel::new().become_user(owner);
            if became.is_ok() {
                sys::kill_everyone();
            }
            sys::exit(0)
        }
        Ok(Forked::Parent(pid)) => {
            let _ = sys::wait4(Some(pid), Patience::Block);
        }
        Err(_) => {}
    }
}
