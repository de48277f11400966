//! How much memory a sandbox uses where no control group counts it.
//!
//! Reading what each page belongs to is slow, so there are two measures. The cheap one adds up what each process has resident and never says too little, because a
//! page that several processes share is counted in each. Only when it passes the limit is the exact one taken, in which processes have their part of shared pages.
//! What belongs to no process (private file systems, files of `memfd_create`, detached System V segments) is reported by the sandbox's first process as held.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Pid;

const KIB: u64 = 1024;
/// How the kernel names shared anonymous memory.
const SHARED_ANONYMOUS: &str = "/dev/zero (deleted)";

/// The meter of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// No exact measure before this, so that measuring never takes more than a fifth of the supervisor's time.
    next_exact: Option<Instant>,
    /// What the first process reported last.
    pub(super) held: u64,
}

impl Meter {
    /// Bytes that the sandbox uses, exact when it matters: `cheap` is the sum of [`resident`] over its processes.
    pub(super) fn used(&mut self, cheap: u64, limit: u64, processes: impl IntoIterator<Item = Pid>) -> u64 {
        let upper = cheap.saturating_add(self.held);
        let began = Instant::now();
        if upper <= limit {
            return upper;
        }
        if self.next_exact.is_some_and(|next| began < next) {
            return limit;
        }
        let exact = processes.into_iter().map(exact).fold(self.held, u64::saturating_add);
        self.next_exact = Some(began + began.elapsed() * 5);
        exact
    }
}

/// Bytes of a process that are not backed by a file on disk, shared ones included.
pub(super) fn resident(pid: Pid) -> u64 {
    resident_of(&fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default())
}

fn resident_of(status: &str) -> u64 {
    ["RssAnon:", "RssShmem:", "VmSwap:"].iter().map(|name| kibibytes(status, name)).sum()
}

fn kibibytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0).saturating_mul(KIB)
}

/// A process's part of the memory of the tree, without what is counted as held.
fn exact(pid: Pid) -> u64 {
    match fs::read_to_string(format!("/proc/{}/smaps", pid.as_raw_nonzero())) {
        Ok(smaps) if !smaps.is_empty() => exact_of(&smaps),
        // One that hides from its own user is counted in full.
        _ => resident(pid),
    }
}

fn exact_of(smaps: &str) -> u64 {
    let (mut sum, mut kind) = (0_u64, Kind::Anonymous);
    for line in smaps.lines() {
        if let Some(found) = Kind::of_header(line) {
            kind = found;
            continue;
        }
        let counted: &[&str] = match kind {
            Kind::Anonymous => &["Pss:", "SwapPss:"],
            Kind::File => &["Anonymous:"],
        };
        sum = counted.iter().map(|name| kibibytes(line, name)).fold(sum, u64::saturating_add);
    }
    sum
}

/// What backs a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing, or shared anonymous memory.
    Anonymous,
    /// A file: of a disk, of a private file system or a System V segment. Only pages that were copied on write are the process's own.
    File,
}

impl Kind {
    /// The kind of the mapping that a line introduces; `None` if it is not such a line.
    fn of_header(line: &str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let is_address = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_address(from) || !is_address(to) {
            return None;
        }
        let inode = rest.split_whitespace().nth(3)?;
        Some(if inode == "0" || rest.ends_with(SHARED_ANONYMOUS) { Self::Anonymous } else { Self::File })
    }
}

/// Bytes of all System V segments, from the text of `/proc/sysvipc/shm`.
pub(super) fn segments(text: &str) -> u64 {
    let bytes = |line: &str| {
        let mut fields = line.split_whitespace().rev();
        let (swapped, resident) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse::<u64>().ok()?);
        Some(resident.saturating_add(swapped))
    };
    text.lines().skip(1).filter_map(bytes).fold(0, u64::saturating_add)
}

/// Between looks while a limit is far and when it is near: a guest must not pass it by much in between.
pub(super) fn tick(used: u64, limit: u64, usual: Duration) -> Duration {
    if used > limit / 2 { usual / 5 } else { usual }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0a000-55d0b000 rw-p 00000000 00:00 0                                  [heap]
Rss:                 100 kB
Pss:                  50 kB
Anonymous:           100 kB
SwapPss:               2 kB
7f00a000-7f10a000 rw-s 00000000 00:01 1035                               /dev/zero (deleted)
Pss:                 400 kB
Anonymous:             0 kB
SwapPss:               0 kB
7f20a000-7f21a000 rw-s 00000000 00:01 12                                 /SYSV00000000 (deleted)
Pss:                 900 kB
Anonymous:             0 kB
SwapPss:               0 kB
7f30a000-7f31a000 r--p 00000000 fd:00 4711                               /usr/lib/libc.so.6
Pss:                 700 kB
Anonymous:             8 kB
SwapPss:               0 kB
";

    #[test]
    fn shared_memory_is_counted_in_parts_and_files_are_not() {
        assert_eq!(exact_of(SMAPS), (50 + 2 + 400 + 8) * KIB);
        assert_eq!(
            resident_of("VmRSS:\t  99 kB\nRssAnon:\t  10 kB\nRssFile:\t 70 kB\nRssShmem:\t 19 kB\nVmSwap:\t 1 kB\n"),
            30 * KIB
        );
    }

    #[test]
    fn detached_segments_are_counted_with_what_is_swapped() {
        let header = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n";
        let line = "         0          0   600              67108864    12    12      0  1000  1000  1000  1000 1794000000 1794000000 1794000000              67104768                  4096\n";
        assert_eq!(segments(&format!("{header}{line}{line}")), 2 * 67_108_864);
        assert_eq!(segments(header), 0);
    }
}
