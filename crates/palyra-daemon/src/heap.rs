//! Memory that was freed goes back to the system.
//!
//! The allocator of glibc keeps freed pages that lie below one still in use, in every arena that a thread ever had; after a load of a gigabyte the process would stay that
//! large. So there are no more arenas than threads that work, and once memory has grown, what is free is given back from time to time. Where nothing has
//! grown since, nothing is done: a daemon at rest stays at rest. Other allocators give memory back by themselves.

use std::time::Duration;

use palyra_telemetry::resident_bytes;
use tokio_util::sync::CancellationToken;

/// Arenas of the allocator: one for each thread of the runtime at most.
#[cfg(target_env = "gnu")]
const ARENAS: i32 = 4;
/// How often the size of the process is looked at, which costs one read of `/proc`.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Growth since memory was last given back that makes it worth doing again.
const WORTHWHILE: u64 = 2 * 1024 * 1024;

/// Bounds the arenas. To be called before there are threads.
pub(crate) fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "the allocator has no safe interface for its settings")]
        // SAFETY: sets a number in the allocator; takes no pointers. A refusal leaves the default, which works too.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
    }
}

/// Gives memory back whenever the process has grown, until the daemon closes.
pub(crate) async fn keep_trimmed(closing: CancellationToken) {
    let mut floor = resident_bytes().unwrap_or(u64::MAX);
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let Some(now) = resident_bytes() else { return };
        if now < floor.saturating_add(WORTHWHILE) {
            floor = floor.min(now);
            continue;
        }
        // The free lists of a large heap take milliseconds to walk.
        if tokio::task::spawn_blocking(trim).await.is_err() {
            return;
        }
        floor = resident_bytes().unwrap_or(now);
    }
}

fn trim() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "the allocator has no safe interface for this")]
        // SAFETY: only pages without a live allocation are given back; the allocator takes its own locks.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
