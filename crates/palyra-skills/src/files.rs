//! Reading and replacing files of this crate: bounded on the way in, atomic and private on the way out.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::SkillError;

/// What happens to a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is replaced at once.
    Replace,
    /// It stays, and the write fails.
    Refuse,
}

/// Who may read a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The user alone.
    User,
    /// Everybody: files of a registry are there to be served.
    Everybody,
}

impl Readers {
    const fn file_mode(self) -> u32 {
        match self {
            Self::User => 0o600,
            Self::Everybody => 0o644,
        }
    }

    const fn directory_mode(self) -> u32 {
        match self {
            Self::User => 0o700,
            Self::Everybody => 0o755,
        }
    }
}

/// Keeps the copies of several threads apart.
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Makes a directory, with its parents.
pub(crate) fn make_directory(path: &Path, readers: Readers) -> Result<(), SkillError> {
    DirBuilder::new()
        .recursive(true)
        .mode(readers.directory_mode())
        .create(path)
        .map_err(|source| SkillError::file("make", path, source))
}

/// A regular file of at most `limit` bytes, or nothing where there is no file.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, SkillError> {
    let failed = |source| SkillError::file("read", path, source);
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(failed(io::Error::other(format!("it is larger than {limit} bytes"))));
    }
    Ok(Some(bytes))
}

/// Writes a whole file that has its mode from its first byte on; readers see the old file or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8], existing: Existing, readers: Readers) -> Result<(), SkillError> {
    let failed = |source| SkillError::file("write", path, source);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let copy = directory.join(format!(".{name}.{}.{number}.new", std::process::id()));
    let attempt = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(readers.file_mode()).open(&copy)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match existing {
            Existing::Replace => fs::rename(&copy, path)?,
            // A link is made only where nothing is: no check that a second writer could slip behind.
            Existing::Refuse => {
                fs::hard_link(&copy, path)?;
                fs::remove_file(&copy)?;
            }
        }
        // Makes the name itself survive a power cut.
        fs::File::open(directory)?.sync_all()
    };
    attempt().map_err(|error| {
        let _ = fs::remove_file(&copy);
        failed(error)
    })
}

/// Removes a file if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), SkillError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(SkillError::file("remove", path, source)),
        _ => Ok(()),
    }
}
