//! How much of the disk a sandbox has taken, whoever of its processes wrote it.
//!
//! The kernel counts written bytes per process and adds them to whoever waits for the process. What nobody waits for is lost: a parent that ignores the
//! end of its children lets any number of short-lived writers go uncounted. So the free space of the file systems that a guest may write to is looked at as well.
//! Anybody may have used it, and only when more is gone than the guest may write are the files counted that changed since the start.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::Pid;

/// Bytes of a block, as the kernel counts them for every file.
const BLOCK: u64 = 512;
/// The clock that files are stamped with is behind by up to one tick of the kernel.
const STAMP_DELAY: Duration = Duration::from_millis(20);
/// Most directory entries of one count; a guest that makes more has other limits to pass.
const MOST_ENTRIES: usize = 2_000_000;

/// What a sandbox may write to, by file system.
#[derive(Debug)]
pub(super) struct Disks {
    systems: Vec<FileSystem>,
    since: SystemTime,
}

#[derive(Debug)]
struct FileSystem {
    device: u64,
    places: Vec<PathBuf>,
    /// Free bytes at the start, as if nobody but the guest had written since the last count.
    free_before: u64,
}

impl Disks {
    /// Looks at the file systems of the given places.
    pub(super) fn look(places: &[PathBuf]) -> Self {
        let mut systems: Vec<FileSystem> = Vec::new();
        for place in places {
            let (Ok(metadata), Some(free_before)) = (fs::metadata(place), free(place)) else { continue };
            match systems.iter_mut().find(|system| system.device == metadata.dev()) {
                Some(known) => known.places.push(place.clone()),
                None => systems.push(FileSystem { device: metadata.dev(), places: vec![place.clone()], free_before }),
            }
        }
        Self { systems, since: SystemTime::now().checked_sub(STAMP_DELAY).unwrap_or(SystemTime::UNIX_EPOCH) }
    }

    /// Bytes that the guest took, if the file systems say that it may be more than the limit; else nothing.
    pub(super) fn taken(&mut self, limit: u64, guests: &HashSet<Pid>) -> u64 {
        let mut sum = 0_u64;
        for system in &mut self.systems {
            let Some(free_now) = system.places.first().and_then(|place| free(place)) else { continue };
            if system.free_before.saturating_sub(free_now) > limit {
                let mut count = Count { device: system.device, since: self.since, limit, ..Count::default() };
                count.unlinked(guests);
                system.places.iter().for_each(|place| count.below(place));
                system.free_before = free_now.saturating_add(count.bytes);
                sum = sum.saturating_add(count.bytes);
            }
        }
        sum
    }
}

fn free(place: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    Some(found.f_bfree.saturating_mul(found.f_frsize))
}

/// A count of the blocks of files that changed.
struct Count {
    device: u64,
    since: SystemTime,
    limit: u64,
    seen: HashSet<u64>,
    entries: usize,
    bytes: u64,
}

impl Default for Count {
    fn default() -> Self {
        Self { device: 0, since: SystemTime::UNIX_EPOCH, limit: u64::MAX, seen: HashSet::new(), entries: 0, bytes: 0 }
    }
}

impl Count {
    /// Files that have no name any more but are open.
    fn unlinked(&mut self, guests: &HashSet<Pid>) {
        for pid in guests {
            let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
            for metadata in open.filter_map(|entry| fs::metadata(entry.path()).ok()) {
                if metadata.is_file() && metadata.nlink() == 0 {
                    self.add(&metadata);
                }
            }
        }
    }

    fn below(&mut self, place: &Path) {
        let mut ahead = vec![place.to_owned()];
        while let Some(path) = ahead.pop() {
            self.entries += 1;
            if self.bytes > self.limit || self.entries > MOST_ENTRIES {
                return;
            }
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_file() {
                self.add(&metadata);
            } else if metadata.is_dir() && metadata.dev() == self.device {
                match fs::read_dir(&path) {
                    Ok(entries) => ahead.extend(entries.flatten().map(|entry| entry.path())),
                    // The guest has closed it to hide what is in there.
                    Err(_) if self.is_new(&metadata) => self.bytes = u64::MAX,
                    Err(_) => {}
                }
            }
        }
    }

    fn add(&mut self, metadata: &fs::Metadata) {
        if metadata.dev() == self.device && self.is_new(metadata) && self.seen.insert(metadata.ino()) {
            self.bytes = self.bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK));
        }
    }

    /// Whether something was changed after the start. A guest can set a file's other times, but not this one.
    fn is_new(&self, metadata: &fs::Metadata) -> bool {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (seconds, nanoseconds) = (u64::try_from(metadata.ctime()).unwrap_or(0), metadata.ctime_nsec());
        Duration::new(seconds, u32::try_from(nanoseconds).unwrap_or(0)) >= since
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const KIB: usize = 1024;

    fn count(since: SystemTime, place: &Path) -> u64 {
        let device = fs::metadata(place).unwrap().dev();
        let mut count = Count { device, since, ..Count::default() };
        count.below(place);
        count.bytes
    }

    #[test]
    fn only_what_changed_since_the_start_is_counted_and_each_file_once() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("file");
        fs::write(&file, vec![1; 64 * KIB]).unwrap();
        fs::hard_link(&file, place.path().join("again")).unwrap();
        fs::File::options().write(true).open(&file).unwrap().sync_all().unwrap();
        let counted = count(SystemTime::UNIX_EPOCH, place.path());
        assert!((64 * KIB as u64..=128 * KIB as u64).contains(&counted), "{counted}");
        assert_eq!(count(SystemTime::now() + Duration::from_secs(60), place.path()), 0);
    }

    #[test]
    fn free_space_that_others_used_is_not_the_guests() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut disks = Disks::look(&[place.path().to_owned()]);
        for system in &mut disks.systems {
            system.free_before = u64::MAX;
        }
        assert_eq!(disks.taken(1 << 20, &HashSet::new()), 0);
        let free_before = disks.systems.first().unwrap().free_before;
        assert!(free_before < u64::MAX, "the next look begins from here");
    }

    #[test]
    fn a_closed_directory_hides_nothing_from_an_ordinary_user() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let closed = place.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("file"), vec![1; 64 * KIB]).unwrap();
        fs::File::open(closed.join("file")).unwrap().sync_all().unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let counted = count(SystemTime::UNIX_EPOCH, place.path());
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(counted >= 64 * KIB as u64, "{counted}");
    }
}
