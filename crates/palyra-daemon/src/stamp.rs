//! Whether a file has changed, without reading it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Which file it is, its size, and when its content and its entry changed: different whenever the file was changed or replaced, also by
/// one of the same size within one tick of the clock; none while there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(u64, u64, [i64; 4])>);

impl Stamp {
    /// The file as it is now. Taken before the file is read, so that no change in between is missed.
    pub(crate) fn of(file: Option<&Path>) -> Self {
        let metadata = file.and_then(|file| std::fs::metadata(file).ok());
        Self(
            metadata.map(|file| {
                (file.ino(), file.len(), [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()])
            }),
        )
    }
}
