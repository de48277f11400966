//! Where everything lies under a state root, and the few file-system moves that must be done the same way everywhere.
//!
//! Owns paths and durability of small files; what is in them belongs to the modules that read them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::JournalError;

/// The paths of one state root.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
    pub(crate) fn journal_dir(&self) -> PathBuf {
        self.root.join("journal")
    }
    pub(crate) fn database(&self) -> PathBuf {
        self.journal_dir().join("journal.db")
    }
    /// What SQLite calls the log that it writes before the database.
    pub(crate) fn write_ahead_log(&self) -> PathBuf {
        self.journal_dir().join("journal.db-wal")
    }
    pub(crate) fn segments_dir(&self) -> PathBuf {
        self.journal_dir().join("segments")
    }
    pub(crate) fn segment(&self, file: &str) -> PathBuf {
        self.segments_dir().join(file)
    }
    pub(crate) fn anchor(&self) -> PathBuf {
        self.journal_dir().join("anchor")
    }
    /// The same statement outside `journal/`, so that it is still there when that directory is not.
    pub(crate) fn outer_anchor(&self) -> PathBuf {
        self.root.join("journal.anchor")
    }
    pub(crate) fn lock(&self) -> PathBuf {
        self.journal_dir().join("writer.lock")
    }
    pub(crate) fn damage_marker(&self) -> PathBuf {
        self.journal_dir().join("damaged.json")
    }
    /// Says that somebody gave up the records of the former journal, so that a new one may begin. Gone once it has.
    pub(crate) fn accepted_loss(&self) -> PathBuf {
        self.journal_dir().join("accepted-loss")
    }
    /// Says what the database file was like when it was closed.
    pub(crate) fn closed_note(&self) -> PathBuf {
        self.journal_dir().join("closed")
    }
    /// Says that this state was restored from a backup; outside `journal/`, where nothing else moves it.
    pub(crate) fn restored_note(&self) -> PathBuf {
        self.root.join("restored.json")
    }
    /// A person's word about restores that waits to be put on the log.
    pub(crate) fn restore_acknowledgement(&self) -> PathBuf {
        self.root.join("restore-accepted.json")
    }
    pub(crate) fn keys_dir(&self) -> PathBuf {
        self.root.join("keys")
    }
    pub(crate) fn private_key(&self) -> PathBuf {
        self.keys_dir().join("journal.key")
    }
    pub(crate) fn public_keys(&self) -> PathBuf {
        self.keys_dir().join("journal.pub")
    }
    pub(crate) fn artifacts_dir(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Makes the directories that are missing, readable by their owner alone.
    pub(crate) fn create(&self) -> io::Result<()> {
        for dir in [&self.root, &self.journal_dir(), &self.segments_dir(), &self.keys_dir(), &self.artifacts_dir()] {
            create_private_dir(dir)?;
        }
        Ok(())
    }
}

/// Makes a directory and its parents; new ones are closed to other users.
pub(crate) fn create_private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Replaces a file as a whole: after a crash it holds the old or the new bytes, never a mixture.
pub(crate) fn write_atomically(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or_else(|| Path::new("."));
    let temporary = path.with_extension(format!("tmp-{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_dir(parent)
}

/// Whether nobody can write below this path because of how its file system is mounted.
pub(crate) fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|stat| stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Refuses a state root that cannot be written because of how its file system is mounted.
///
/// # Errors
/// `state_read_only`.
pub fn check_writable(root: &Path) -> Result<(), JournalError> {
    if is_read_only(root) { Err(JournalError::ReadOnly { root: root.to_owned() }) } else { Ok(()) }
}

/// Bytes that an unprivileged process may still write on the file system of `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
