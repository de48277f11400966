//! One writer per state root: an exclusive `flock` on `journal/writer.lock`, which the kernel drops when the process dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use crate::error::JournalError;
use crate::layout::Layout;

const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Held as long as the writer lives.
#[derive(Debug)]
pub(crate) struct WriterLock {
    _file: File,
}

impl WriterLock {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(layout: &Layout) -> Result<Self, JournalError> {
        let path = layout.lock();
        let failed = |e| JournalError::file("lock", &path, e);
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
        match try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::StateInUse { root: layout.root.clone(), holder: holder(layout) });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // The number helps people only; the lock itself is what excludes. A full disk must not keep a daemon from starting.
        let noted = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = noted {
            tracing::debug!(%error, "could not write the process id to the lock file");
        }
        Ok(Self { _file: file })
    }
}

/// A health check holds the lock for an instant; that must not look like another daemon.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    file.try_lock()
}

/// Whether some process writes this state now.
pub(crate) fn is_held(layout: &Layout) -> bool {
    match File::open(layout.lock()) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// Who holds the lock, for a message.
pub(crate) fn holder(layout: &Layout) -> String {
    match fs::read_to_string(layout.lock()).ok().and_then(|text| text.trim().parse::<u32>().ok()) {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}
