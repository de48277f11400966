//! Memory that belongs to a sandbox and to none of its processes: files in private file systems, files of `memfd_create`, and System V segments.
//!
//! Measured by the sandbox's first process, because both can be seen only from inside. A control group counts them where there is one.

use std::fs;
use std::path::PathBuf;

use super::memory;
use super::memory_files::MemoryFiles;
use crate::plan::{Namespace, Plan, Step};

/// A smaller change is not worth a message.
const WORTH_TELLING: u64 = 1 << 20;

/// The meter of one sandbox.
#[derive(Debug)]
pub(super) struct Holdings {
    scratches: Vec<PathBuf>,
    has_segments: bool,
    /// More than this ends the sandbox.
    limit: u64,
    told: u64,
}

impl Holdings {
    /// For a sandbox whose root is in place.
    pub(super) fn of(plan: &Plan) -> Self {
        let scratches = plan.room.iter().filter_map(|step| match step {
            Step::Scratch { path, .. } | Step::CoverScratch { path, .. } => Some(path.clone()),
            _ => None,
        });
        Self {
            scratches: scratches.collect(),
            has_segments: plan.namespaces.contains(&Namespace::Ipc),
            limit: plan.limits.memory_bytes,
            told: 0,
        }
    }

    /// The bytes held now, if they differ much from what was told last.
    pub(super) fn changed(&mut self, files: Option<&mut MemoryFiles>) -> Option<u64> {
        // What cannot be measured any more is too much.
        let files =
            files.map_or(Some(0), MemoryFiles::bytes).unwrap_or_else(|| self.limit.saturating_add(WORTH_TELLING));
        let now = self.measure().saturating_add(files);
        (now.abs_diff(self.told) >= WORTH_TELLING).then(|| {
            self.told = now;
            now
        })
    }

    fn measure(&self) -> u64 {
        let used = |path: &PathBuf| {
            let found = rustix::fs::statvfs(path).ok()?;
            Some(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
        };
        let files = self.scratches.iter().filter_map(used).fold(0, u64::saturating_add);
        // The host's segments are not the guest's: tier B has no namespace for them, and its filter no call to make any.
        let text =
            if self.has_segments { fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default() } else { String::new() };
        files.saturating_add(memory::segments(&text))
    }
}
