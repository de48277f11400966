//! How it is told without reading that a file is still the same.

use std::time::{Duration, SystemTime};

use cap_std::fs::{Metadata, MetadataExt as _};

/// Clocks of file systems tick every few milliseconds: a file that was changed this recently may change again without its times showing it.
const YOUNG: Duration = Duration::from_millis(50);

/// Device, inode and time of birth.
pub(super) type Identity = (u64, u64, Option<SystemTime>);

/// Identity, size, times, permissions, owner and number of names. The time of the last status change cannot be set by programs, so a program that restores the
/// modification time of what it wrote is still noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    pub(super) mode: u32,
    /// The set-user-id, set-group-id and sticky bits.
    pub(super) special: u32,
    pub(super) owner: (u32, u32),
    /// How many names it has.
    pub(super) links: u64,
    /// When it was made, where the file system keeps that.
    born: Option<SystemTime>,
    settled: Settled,
}

/// Whether an equal stamp later proves that nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Yes,
    No,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata, now: SystemTime) -> Self {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        let settled = if now > moment(changed) + YOUNG { Settled::Yes } else { Settled::No };
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed,
            mode: metadata.mode() & 0o777,
            special: metadata.mode() & 0o7000,
            owner: (metadata.uid(), metadata.gid()),
            links: metadata.nlink(),
            born: metadata.created().ok().map(cap_std::time::SystemTime::into_std),
            settled,
        }
    }

    /// Whether nothing about the file has changed since, not even its name. A file that only came into sight, because an ignore file or a limit had hidden it,
    /// was not made meanwhile.
    pub(super) fn is_older_than(&self, moment: SystemTime) -> bool {
        self.change_time() + YOUNG < moment
    }

    /// When anything about the file last changed.
    pub(super) fn change_time(&self) -> SystemTime {
        moment(self.changed)
    }

    /// When it was made, where the file system keeps that.
    pub(super) fn birth_time(&self) -> Option<SystemTime> {
        self.born
    }

    /// Whether the file was there at that moment, under whatever name.
    pub(super) fn is_born_before(&self, moment: SystemTime) -> bool {
        self.born.is_some_and(|born| born + YOUNG < moment)
    }

    /// What all names of the file have in common.
    pub(super) fn inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// What stays the same about a file, whatever it holds and wherever it lies.
    pub(super) fn identity(&self) -> Identity {
        (self.device, self.inode, self.born)
    }

    /// Whether a file with this stamp now is certainly the one that had the other stamp then.
    pub(super) fn proves_unchanged_since(&self, then: &Self) -> bool {
        then.settled == Settled::Yes && Self { settled: then.settled, ..*self } == *then
    }
}

/// When a directory, or anything else, or what is in it, last changed.
pub(super) fn last_change(metadata: &Metadata) -> SystemTime {
    moment((metadata.ctime(), metadata.ctime_nsec()).max((metadata.mtime(), metadata.mtime_nsec())))
}

fn moment((seconds, nanoseconds): (i64, i64)) -> SystemTime {
    let since =
        Duration::new(u64::try_from(seconds).unwrap_or_default(), u32::try_from(nanoseconds).unwrap_or_default());
    SystemTime::UNIX_EPOCH + since
}
