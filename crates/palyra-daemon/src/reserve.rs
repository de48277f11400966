//! Room that is kept for starting on a full disk.
//!
//! A start writes a few small files, and SQLite needs some memory in a file beside its database. On a disk without any room none of that succeeds, and nobody could ask the daemon what is
//! wrong. So a file of fixed size lies in the state root while there is room to spare. A start that finds the disk full removes it: the daemon then answers, serves
//! what it has, and refuses new work with `disk_full`. The file is made again once there is room.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

/// Name of the file.
const NAME: &str = "reserve";
/// Several times what a start writes.
const BYTES: u64 = 1 << 20;
/// A disk with less room than this is better off without the file.
const AMPLE: u64 = 16 * BYTES;
/// How often it is looked whether the file can be made again.
const EVERY: Duration = Duration::from_secs(30);

/// The reserve of one state root.
#[derive(Debug, Clone)]
pub(crate) struct Reserve {
    path: PathBuf,
    root: PathBuf,
}

impl Reserve {
    pub(crate) fn of(root: &Path) -> Self {
        Self { path: root.join(NAME), root: root.to_owned() }
    }

    /// Gives the room up if the disk has none left, otherwise sees to it that it is kept. Nothing here keeps a daemon from starting.
    pub(crate) fn settle(&self) {
        match self.free_bytes() {
            Ok(free) if free < BYTES => match fs::remove_file(&self.path) {
                Ok(()) => tracing::warn!(free, "the disk is full; starting with the room that was kept for this"),
                Err(error) => tracing::warn!(%error, free, "the disk is full, and no room was kept for a start"),
            },
            Ok(_) => self.keep(),
            Err(error) => tracing::warn!(%error, "cannot find out how much room the disk has"),
        }
    }

    /// Makes the file again when there is room, until the daemon ends.
    pub(crate) async fn maintain(self, closing: CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
            let reserve = self.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || reserve.keep()).await {
                tracing::warn!(%error, "keeping room for a start on a full disk failed");
            }
        }
    }

    fn keep(&self) {
        let is_there = fs::metadata(&self.path).is_ok_and(|file| file.len() == BYTES);
        if is_there || !self.free_bytes().is_ok_and(|free| free >= AMPLE) {
            return;
        }
        if let Err(error) = self.make() {
            let _ = fs::remove_file(&self.path);
            tracing::warn!(%error, "no room could be kept for a start on a full disk");
        }
    }

    fn make(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, BYTES) {
            Err(Errno::OPNOTSUPP) => write_zeros(file),
            made => Ok(made?),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = statvfs(&self.root)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// For file systems that reserve blocks only by being written to.
fn write_zeros(mut file: File) -> io::Result<()> {
    let zeros = [0; 4096];
    for _ in 0..BYTES / 4096 {
        file.write_all(&zeros)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn the_room_is_really_taken_and_taken_once() {
        let directory = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(directory.path());
        reserve.settle();
        let made = fs::metadata(&reserve.path).unwrap();
        assert_eq!((made.len(), made.mode() & 0o777), (BYTES, 0o600));
        assert!(made.blocks() * 512 >= BYTES, "{} blocks", made.blocks());
        reserve.settle();
        assert_eq!(fs::metadata(&reserve.path).unwrap().mtime_nsec(), made.mtime_nsec(), "it is left as it is");
    }
}
