//! Files in memory (`memfd_create`) of a sandbox whose memory no control group counts.
//!
//! The sandbox's first process makes each file and keeps a descriptor of its own, by which the file's size is known wherever the guest's descriptors are: a
//! process, a mapping, a socket's queue. A file that nobody else has open any more is let go.
//!
//! INVARIANT: a file is counted until the kernel has freed it. Descriptors that only name a file (`O_PATH`) keep its memory without being seen as open; a file
//! that lives on after it was let go of can no longer be measured, so it counts as more than any limit.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, inotify};
use rustix::io::Errno;

use super::watch::timespec;
use crate::sys;

/// Most files at one time. Each takes a descriptor of the first process, and memory of the kernel that nothing counts.
const MOST: usize = 512;
/// How long the end of a file is waited for. It comes at once, unless another process is looking at its name at this moment.
const END_TIME: Duration = Duration::from_millis(100);
/// The unit of `st_blocks`.
const BLOCK: u64 = 512;

/// The files of one sandbox.
#[derive(Debug, Default)]
pub(super) struct MemoryFiles {
    /// One descriptor for reading per file that somebody may have open.
    live: Vec<OwnedFd>,
    /// Tells the end of files; made when the first one is let go of.
    ends: Option<OwnedFd>,
    /// Whether a file has lived on after it was let go of.
    lost: bool,
}

impl MemoryFiles {
    /// Whether there is anything to count.
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty() && !self.lost
    }

    /// Makes a file, as `memfd_create` would with these flags, and returns the guest's descriptor.
    pub(super) fn create(&mut self, flags: u32) -> io::Result<OwnedFd> {
        let flags = MemfdFlags::from_bits_retain(flags);
        if flags.contains(MemfdFlags::HUGETLB) {
            // Large pages are reserved for the whole host and are in nobody's size.
            return Err(Errno::INVAL.into());
        }
        if self.live.len() >= MOST {
            self.let_go();
        }
        if self.live.len() >= MOST || self.lost {
            return Err(Errno::NFILE.into());
        }
        let made = rustix::fs::memfd_create("guest", flags | MemfdFlags::CLOEXEC)?;
        // The first descriptor is not counted as an opening; one that was opened by name is.
        let own = open_again(&made, OFlags::RDONLY)?;
        let theirs = open_again(&made, OFlags::RDWR)?;
        self.live.push(own);
        Ok(theirs)
    }

    /// Bytes of all files, or `None` if one of them cannot be measured any more.
    pub(super) fn bytes(&mut self) -> Option<u64> {
        self.let_go();
        if self.lost {
            return None;
        }
        let bytes = |file: &OwnedFd| {
            rustix::fs::fstat(file).map_or(0, |status| u64::try_from(status.st_blocks).unwrap_or(0) * BLOCK)
        };
        Some(self.live.iter().map(bytes).fold(0, u64::saturating_add))
    }

    /// Lets go of the files that nobody has open.
    fn let_go(&mut self) {
        for file in self.live.extract_if(.., |file| sys::is_the_only_opening(file.as_fd())).collect::<Vec<_>>() {
            match self.close(file) {
                Ok(ended) => self.lost |= !ended,
                // Without a way to learn of its end it stays, and stays counted.
                Err(file) => self.live.push(file),
            }
        }
    }

    /// Closes a file and tells whether that was its end; gives it back if that could not be learnt.
    fn close(&mut self, file: OwnedFd) -> Result<bool, OwnedFd> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let ends = match self.ends.take() {
            Some(ends) => ends,
            None => match inotify::init(flags) {
                Ok(ends) => ends,
                Err(_) => return Err(file),
            },
        };
        let ends = self.ends.insert(ends);
        if inotify::add_watch(&*ends, name(&file), inotify::WatchFlags::DELETE_SELF).is_err() {
            return Err(file);
        }
        drop(file);
        let mut polled = [PollFd::new(&*ends, PollFlags::IN)];
        let ended = rustix::event::poll(&mut polled, Some(&timespec(END_TIME))) == Ok(1);
        // No other file is watched, so whatever it says is about this one.
        let _ = rustix::io::read(&*ends, &mut [0; 4096]);
        Ok(ended)
    }
}

fn name(file: &OwnedFd) -> String {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn open_again(file: &OwnedFd, access: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, name(file), access | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    const MIB: usize = 1 << 20;

    fn filled(files: &mut MemoryFiles) -> File {
        let mut file = File::from(files.create(2).unwrap());
        file.write_all(&vec![1; MIB]).unwrap();
        file
    }

    #[test]
    fn a_file_counts_as_long_as_anybody_has_it() {
        let mut files = MemoryFiles::default();
        let file = filled(&mut files);
        assert_eq!(files.bytes(), Some(MIB as u64));
        let other = open_again(&file.try_clone().unwrap().into(), OFlags::RDONLY).unwrap();
        drop(file);
        assert_eq!(files.bytes(), Some(MIB as u64), "a second opening keeps it");
        drop(other);
        assert_eq!((files.bytes(), files.is_empty()), (Some(0), true));
    }

    #[test]
    fn a_file_that_is_only_named_cannot_be_measured() {
        let mut files = MemoryFiles::default();
        let file: OwnedFd = filled(&mut files).into();
        let _named = open_again(&file, OFlags::PATH).unwrap();
        drop(file);
        assert_eq!(files.bytes(), None);
        assert_eq!(files.create(0).unwrap_err().raw_os_error(), Some(Errno::NFILE.raw_os_error()));
    }

    #[test]
    fn any_number_of_files_can_be_made_one_after_another() {
        let mut files = MemoryFiles::default();
        for _ in 0..2 * MOST {
            drop(files.create(0).unwrap());
        }
        let kept: Vec<_> = (0..MOST).map(|_| files.create(0).unwrap()).collect();
        assert_eq!(files.create(0).unwrap_err().raw_os_error(), Some(Errno::NFILE.raw_os_error()));
        drop(kept);
        assert!(files.create(0).is_ok());
    }
}
