//! Room for the write-ahead log, made before it is needed.
//!
//! Syncing a file that grows also syncs its length and its new blocks, which takes about twice as long as syncing bytes that were there before. The
//! log starts over at its beginning whenever it has been folded back, so it is enough to give it its full length once, in zeros.
//! SQLite takes zeros after the last frame for what they are: no frame.
//!
//! INVARIANT: only the writer thread calls this, between commits, so nobody else writes the log at the same time.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::layout::free_bytes;

/// Zeros are written in pieces of this size.
const PIECE: usize = 256 * 1024;
/// A disk with less room than this many times the log is left alone: there, room matters more than time.
const AMPLE: u64 = 32;

/// Extends the log to `length` bytes. A log that is not there yet, or a disk that is short of room, is left as it is.
pub(crate) fn make_room(log: &Path, length: u64) -> io::Result<()> {
    let file = match OpenOptions::new().write(true).open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let present = file.metadata()?.len();
    let directory = log.parent().unwrap_or(log);
    if present >= length || free_bytes(directory)? < length * AMPLE {
        return Ok(());
    }
    let zeros = vec![0; PIECE];
    let mut at = present;
    while at < length {
        let piece = usize::try_from(length - at).unwrap_or(PIECE).min(PIECE);
        file.write_all_at(zeros.get(..piece).unwrap_or_default(), at)?;
        at += piece as u64;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_extended_once_and_what_it_holds_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        make_room(&log, 1 << 20).unwrap();
        assert!(!log.exists(), "nothing is made where no log is");
        std::fs::write(&log, b"frames").unwrap();
        make_room(&log, 1 << 20).unwrap();
        let bytes = std::fs::read(&log).unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        assert!(bytes.starts_with(b"frames") && bytes[6..].iter().all(|byte| *byte == 0));
        make_room(&log, 1 << 10).unwrap();
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 1 << 20, "it is never shortened");
    }
}
