//! Whether a file has changed, without reading it.

use std::path::Path;
use std::time::SystemTime;

/// Time and size of a file: different whenever it was changed; none while there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(Option<SystemTime>, u64)>);

impl Stamp {
    /// The file as it is now. Taken before the file is read, so that no change in between is missed.
    pub(crate) fn of(file: Option<&Path>) -> Self {
        let metadata = file.and_then(|file| std::fs::metadata(file).ok());
        Self(metadata.map(|metadata| (metadata.modified().ok(), metadata.len())))
    }
}
