//! Content-addressed files for payloads too large for a row: `artifacts/ab/<64 hex digits>`.
//!
//! Bytes that are there are stored at once; bytes that arrive piece by piece go to a file from the first piece on and never lie in memory whole.
//! An artifact is written to a temporary name, made durable, then renamed; a name that exists is therefore complete. Bytes are
//! checked against their name on every read, so a changed file is an error and never an answer.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use palyra_common::Digest;
use sha2::{Digest as _, Sha256};

use crate::error::JournalError;
use crate::layout::{create_private_dir, sync_dir};

/// Two writers of the same artifact in one process must not share a temporary file.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);
/// Directories with names in them that could not be made durable. A file that lies there must not be relied on before that was made good.
static UNSYNCED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// Held while an artifact gets its name, is found to be there already, or is removed because nothing names it.
static NAMES: Mutex<()> = Mutex::new(());
/// An artifact that is stored again counts as stored anew if it was stored longer ago than this; see [`crate::collect`].
pub(crate) const REFRESH_AFTER: Duration = Duration::from_secs(3600);
/// Where bytes lie until all of them are there.
const INCOMING: &str = "incoming";
/// Read buffer while an artifact is checked.
const BUFFER: usize = 64 * 1024;

/// The artifact store of a state root.
#[derive(Debug, Clone)]
pub struct ArtifactStore {
    dir: PathBuf,
}

impl ArtifactStore {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(crate) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// Where an artifact lies.
    #[must_use]
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_hex();
        let shelf = name.get(..2).unwrap_or_default().to_owned();
        self.dir.join(shelf).join(name)
    }

    /// Stores bytes durably and returns their digest; storing the same bytes again costs nothing.
    ///
    /// # Errors
    /// If the file system refuses; `disk_full` if it has no room.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, JournalError> {
        let digest = Digest::of(bytes);
        if self.refresh(&digest, bytes.len() as u64) {
            let path = self.path(&digest);
            for dir in [Some(self.dir.as_path()), path.parent()].into_iter().flatten().filter(|dir| is_unsynced(dir)) {
                make_names_durable(dir).map_err(|e| JournalError::file("sync", dir, e))?;
            }
            return Ok(digest);
        }
        let mut incoming = self.receive()?;
        incoming.write(bytes)?;
        incoming.finish().map(|(digest, _)| digest)
    }

    /// Whether an artifact of this size is there already. It counts as stored now.
    fn refresh(&self, digest: &Digest, size: u64) -> bool {
        let _names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path(digest);
        let Ok(metadata) = fs::metadata(&path) else { return false };
        if metadata.len() != size {
            return false;
        }
        let age = metadata.modified().ok().and_then(|stored| SystemTime::now().duration_since(stored).ok());
        if age.is_none_or(|age| age < REFRESH_AFTER) {
            return true;
        }
        // One whose time cannot be set is written again.
        File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now())).is_ok()
    }

    /// Removes an artifact that nothing names, unless it was stored again since `stored`; returns how many bytes it had.
    pub(crate) fn remove_unless_stored_since(
        &self,
        digest: &Digest,
        stored: SystemTime,
    ) -> Result<Option<u64>, JournalError> {
        let _names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path(digest);
        let Ok(metadata) = fs::metadata(&path) else { return Ok(None) };
        if metadata.modified().ok() != Some(stored) {
            return Ok(None);
        }
        fs::remove_file(&path).map_err(|e| JournalError::file("remove", &path, e))?;
        Ok(Some(metadata.len()))
    }

    /// Takes bytes that arrive piece by piece.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn receive(&self) -> Result<Incoming, JournalError> {
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let shelf = self.dir.join(INCOMING);
        let path = shelf.join(format!(".tmp-{}-{number}", std::process::id()));
        let opened = create_private_dir(&shelf)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path));
        let file = opened.map_err(|e| JournalError::file("write", &path, e))?;
        Ok(Incoming { store: self.clone(), temporary: Temporary(path), file, hasher: Sha256::new(), size: 0 })
    }

    /// Removes what a process left behind that died while bytes arrived. Only for whoever holds the state alone.
    pub(crate) fn forget_unfinished(&self) {
        for file in fs::read_dir(self.dir.join(INCOMING)).into_iter().flatten().flatten() {
            let _ = fs::remove_file(file.path());
        }
    }

    /// The bytes of an artifact.
    ///
    /// # Errors
    /// `artifact_not_found`, or `artifact_changed` if the file no longer holds what was stored.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, JournalError> {
        let mut bytes = Vec::new();
        self.open(digest)?.read_to_end(&mut bytes).map_err(|e| JournalError::file("read", self.path(digest), e))?;
        if Digest::of(&bytes) == *digest { Ok(bytes) } else { Err(JournalError::ArtifactChanged { digest: *digest }) }
    }

    /// Up to `length` bytes from `offset`; fewer at the end. The whole artifact is checked first.
    ///
    /// # Errors
    /// As for [`ArtifactStore::get`].
    pub fn get_range(&self, digest: &Digest, offset: u64, length: usize) -> Result<Vec<u8>, JournalError> {
        let failed = |e| JournalError::file("read", self.path(digest), e);
        let file = self.checked(digest)?;
        let rest = file.metadata().map_err(failed)?.len().saturating_sub(offset);
        let mut bytes = vec![0; length.min(usize::try_from(rest).unwrap_or(usize::MAX))];
        file.read_exact_at(&mut bytes, offset).map_err(failed)?;
        Ok(bytes)
    }

    /// Whether there is such an artifact; says nothing about its bytes.
    #[must_use]
    pub fn contains(&self, digest: &Digest) -> bool {
        self.path(digest).is_file()
    }

    /// Its size in bytes.
    ///
    /// # Errors
    /// `artifact_not_found`.
    pub fn len(&self, digest: &Digest) -> Result<u64, JournalError> {
        let path = self.path(digest);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) => Err(self.not_read(digest, error)),
        }
    }

    /// Checks an artifact in constant memory.
    ///
    /// # Errors
    /// As for [`ArtifactStore::get`].
    pub fn check(&self, digest: &Digest) -> Result<(), JournalError> {
        self.checked(digest).map(drop)
    }

    fn checked(&self, digest: &Digest) -> Result<File, JournalError> {
        let file = self.open(digest)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; BUFFER];
        let mut offset = 0;
        loop {
            let read =
                file.read_at(&mut buffer, offset).map_err(|e| JournalError::file("read", self.path(digest), e))?;
            if read == 0 {
                break;
            }
            hasher.update(buffer.get(..read).unwrap_or_default());
            offset += read as u64;
        }
        let found: [u8; 32] = hasher.finalize().into();
        if found == digest.0 { Ok(file) } else { Err(JournalError::ArtifactChanged { digest: *digest }) }
    }

    fn open(&self, digest: &Digest) -> Result<File, JournalError> {
        File::open(self.path(digest)).map_err(|error| self.not_read(digest, error))
    }

    fn not_read(&self, digest: &Digest, error: io::Error) -> JournalError {
        if error.kind() == io::ErrorKind::NotFound {
            return JournalError::NoSuchArtifact { digest: *digest };
        }
        JournalError::file("read", self.path(digest), error)
    }
}

/// An artifact of which not all bytes are there yet. Letting go of it leaves nothing behind.
#[derive(Debug)]
pub struct Incoming {
    store: ArtifactStore,
    temporary: Temporary,
    file: File,
    hasher: Sha256,
    size: u64,
}

impl Incoming {
    /// Adds a piece; blocks.
    ///
    /// # Errors
    /// If the file system refuses; `disk_full` if it has no room.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), JournalError> {
        self.file.write_all(piece).map_err(|e| JournalError::file("write", &self.temporary.0, e))?;
        self.hasher.update(piece);
        self.size += piece.len() as u64;
        Ok(())
    }

    /// Bytes so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes it durable under its digest, and says how many bytes it has; blocks.
    ///
    /// # Errors
    /// As for [`Incoming::write`].
    pub fn finish(self) -> Result<(Digest, u64), JournalError> {
        let digest = Digest(self.hasher.finalize().into());
        let path = self.store.path(&digest);
        let shelf = path.parent().unwrap_or(&self.store.dir);
        let placed = (|| {
            let is_new = !shelf.exists();
            if is_new {
                create_private_dir(shelf)?;
            }
            if is_new || is_unsynced(&self.store.dir) {
                make_names_durable(&self.store.dir)?;
            }
            self.file.sync_all()?;
            {
                let _names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
                fs::rename(&self.temporary.0, &path)?;
            }
            make_names_durable(shelf)
        })();
        placed.map_err(|e| JournalError::file("write", &path, e))?;
        Ok((digest, self.size))
    }
}

fn is_unsynced(dir: &Path) -> bool {
    UNSYNCED.lock().unwrap_or_else(PoisonError::into_inner).contains(dir)
}

/// Syncs a directory, and remembers when that failed.
fn make_names_durable(dir: &Path) -> io::Result<()> {
    let synced = sync_dir(dir);
    let mut unsynced = UNSYNCED.lock().unwrap_or_else(PoisonError::into_inner);
    match &synced {
        Ok(()) => drop(unsynced.remove(dir)),
        Err(_) => drop(unsynced.insert(dir.to_owned())),
    }
    synced
}

/// A file that is removed unless it was renamed.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
