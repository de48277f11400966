//! Returns freed memory to the system.
//!
//! The allocator of glibc keeps freed pages that lie below one still in use, in every arena that a thread ever had; after a load of a gigabyte the process would stay that
//! large. So there are no more arenas than threads that work, and what is free is returned once there is enough of it. The measure is slack, the resident memory that no
//! allocation uses: it grows when a load ends, however long the load held its memory before. Where it has not grown, nothing is done, so an idle daemon stays idle. Other
//! allocators return memory by themselves.
//!
//! The text of the program grows in the same way: each load maps the code that it runs, and nothing ever unmaps it. It is released when the process is quiet again, since a
//! load that goes on would map it at once.

use std::time::Duration;

use palyra_telemetry::resident_bytes;
use rustix::time::{ClockId, clock_gettime};
use tokio_util::sync::CancellationToken;

use crate::startup_memory;

/// Arenas of the allocator: one for each thread of the runtime at most.
#[cfg(target_env = "gnu")]
const ARENAS: i32 = 4;
/// How often slack is measured, which costs one read of `/proc` and a look at the free lists.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Growth of slack since memory was last returned that makes it worth doing again.
const WORTHWHILE: i64 = 2 * 1024 * 1024;
/// A process that works less than this between two looks has no load: it answers a watchdog or shows a page now and then.
const QUIET: Duration = Duration::from_millis(100);
/// Text that was mapped since it was last released and makes that worth doing again.
const MUCH_TEXT: u64 = 4 * 1024 * 1024;

/// Bounds the arenas. To be called before there are threads.
pub(crate) fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "the allocator has no safe interface for its settings")]
        // SAFETY: sets a number in the allocator; takes no pointers. A refusal leaves the default, which works too.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
    }
}

/// Returns memory whenever slack has grown, until the daemon closes.
pub(crate) async fn keep_trimmed(closing: CancellationToken) {
    let (mut policy, mut text) = (TrimPolicy::default(), TextPolicy::default());
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if let Some(mapped) = mapped_bytes()
            && text.is_due(mapped, processor_time())
        {
            startup_memory::release_text().await;
            text.released(mapped_bytes().unwrap_or(mapped));
        }
        let Some(slack) = slack() else { return };
        if !policy.is_due(slack) {
            continue;
        }
        trim().await;
        policy.trimmed(self::slack().unwrap_or(slack));
    }
}

/// Returns what is free in every arena to the system.
pub(crate) async fn trim() {
    #[cfg(target_env = "gnu")]
    {
        // The free lists of a large heap take milliseconds to walk. A failure costs memory and nothing else.
        let _ = tokio::task::spawn_blocking(|| {
            #[expect(unsafe_code, reason = "the allocator has no safe interface for this")]
            // SAFETY: only pages without a live allocation are returned; the allocator takes its own locks.
            unsafe {
                libc::malloc_trim(0)
            }
        })
        .await;
    }
}

/// Decides when to trim, from measurements of slack.
#[derive(Debug, Default)]
struct TrimPolicy {
    /// The least slack since memory was last returned; program text and untouched allocations are part of it, so only its growth says something.
    least: Option<i64>,
}

impl TrimPolicy {
    fn is_due(&mut self, slack: i64) -> bool {
        let least = self.least.map_or(slack, |least| least.min(slack));
        self.least = Some(least);
        slack - least >= WORTHWHILE
    }

    fn trimmed(&mut self, slack: i64) {
        self.least = Some(slack);
    }
}

/// Decides when to release the program's text, from measurements of resident files and of the time that the process has worked.
#[derive(Debug, Default)]
struct TextPolicy {
    /// The least that was resident since text was last released.
    least: Option<u64>,
    /// Processor time up to the last look.
    worked: Duration,
}

impl TextPolicy {
    fn is_due(&mut self, mapped: u64, worked: Duration) -> bool {
        let least = self.least.map_or(mapped, |least| least.min(mapped));
        self.least = Some(least);
        let is_quiet = worked.saturating_sub(self.worked) < QUIET;
        self.worked = worked;
        is_quiet && mapped - least >= MUCH_TEXT
    }

    fn released(&mut self, mapped: u64) {
        self.least = Some(mapped);
    }
}

/// Resident memory that is backed by files.
fn mapped_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// How long all threads have worked.
fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(spent.tv_sec).unwrap_or_default(), u32::try_from(spent.tv_nsec).unwrap_or_default())
}

/// Resident memory that no allocation uses. Negative where large allocations were never touched.
fn slack() -> Option<i64> {
    let resident = i64::try_from(resident_bytes()?).ok()?;
    Some(resident - i64::try_from(allocated_bytes()?).ok()?)
}

/// What allocations use, those with a mapping of their own included.
#[cfg(target_env = "gnu")]
fn allocated_bytes() -> Option<usize> {
    #[expect(unsafe_code, reason = "the allocator has no safe interface for its statistics")]
    // SAFETY: takes no pointers and returns numbers by value; the allocator takes its own locks.
    let statistics = unsafe { libc::mallinfo2() };
    statistics.uordblks.checked_add(statistics.hblkhd)
}

#[cfg(not(target_env = "gnu"))]
fn allocated_bytes() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1024 * 1024;

    #[test]
    fn memory_is_returned_when_a_load_ends_however_long_it_lasted() {
        let mut policy = TrimPolicy::default();
        // Slack at rest; the load allocates, which is resident and in use.
        for _ in 0..10 {
            assert!(!policy.is_due(20 * MIB));
        }
        // It frees 900 MiB that stay resident.
        assert!(policy.is_due(920 * MIB));
        policy.trimmed(21 * MIB);
        assert!(!policy.is_due(21 * MIB));
    }

    #[test]
    fn less_text_in_memory_lowers_the_measure() {
        let mut policy = TrimPolicy::default();
        assert!(!policy.is_due(40 * MIB));
        assert!(!policy.is_due(15 * MIB));
        assert!(policy.is_due(17 * MIB));
    }

    #[test]
    fn text_is_released_once_a_load_is_over() {
        const TEXT: u64 = 11 << 20;
        let second = Duration::from_secs(1);
        let mut policy = TextPolicy::default();
        assert!(!policy.is_due(TEXT, second), "all that came before counts as work");
        assert!(!policy.is_due(TEXT, second), "nothing has grown");
        // A load maps the code that it runs, and goes on.
        assert!(!policy.is_due(4 * TEXT, 3 * second));
        assert!(!policy.is_due(4 * TEXT, 5 * second));
        assert!(policy.is_due(4 * TEXT, 5 * second + QUIET / 2));
        policy.released(TEXT + MUCH_TEXT);
        assert!(!policy.is_due(TEXT + MUCH_TEXT, 5 * second + QUIET / 2), "what comes back by itself is needed");
    }

    #[test]
    fn what_the_kernel_says_of_this_process_is_understood() {
        assert!(mapped_bytes().is_some_and(|mapped| mapped > 0) && processor_time() > Duration::ZERO);
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn allocations_are_counted_and_freed_ones_are_not() {
        let before = allocated_bytes().unwrap();
        let held: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 64 * 1024]).collect();
        assert!(allocated_bytes().unwrap() >= before + 3 * 1024 * 1024);
        drop(held);
        assert!(allocated_bytes().unwrap() < before + 3 * 1024 * 1024);
    }
}
