//! The key that says which files of compiled code are the daemon's own.
//!
//! It is random, made once per state root and never leaves its file (0600). A key that others could read is refused: with it they could write machine code that the
//! daemon runs.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use zeroize::Zeroizing;

use crate::error::PluginError;

/// Length of a key.
const KEY_BYTES: usize = 32;

/// A key of 32 random bytes.
#[derive(Clone)]
pub struct CacheKey(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheKey([redacted])")
    }
}

impl CacheKey {
    /// A key that somebody else keeps.
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A key that lasts as long as the process.
    pub fn random() -> Result<Self, PluginError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(bytes.as_mut_slice()).map_err(|error| PluginError::Cache(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// The key in a file, which is made if it is not there.
    pub fn load_or_create(path: &Path) -> Result<Self, PluginError> {
        let explain = |error: &dyn fmt::Display| PluginError::Cache(format!("`{}`: {error}", path.display()));
        match Self::load(path) {
            Ok(key) => return Ok(key),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(explain(&error)),
        }
        let key = Self::random()?;
        match key.create(path) {
            Ok(()) => Ok(key),
            // Another process was faster: its key counts.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::load(path).map_err(|error| explain(&error))
            }
            Err(error) => Err(explain(&error)),
        }
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    fn load(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::other("the key is not a file"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            if metadata.mode() & 0o077 != 0 {
                return Err(io::Error::other("other users can read the key"));
            }
            // Whoever owns a file can read it, whatever its mode.
            if metadata.uid() != rustix::process::geteuid().as_raw() {
                return Err(io::Error::other("the key belongs to another user"));
            }
        }
        let bytes = Zeroizing::new(fs::read(path)?);
        let bytes: [u8; KEY_BYTES] =
            bytes.as_slice().try_into().map_err(|_| io::Error::other("the key does not have 32 bytes"))?;
        Ok(Self::from_bytes(bytes))
    }

    /// Written beside and linked into place, so that nobody ever sees half a key and none is replaced.
    fn create(&self, path: &Path) -> io::Result<()> {
        let dir = path.parent().unwrap_or_else(|| Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".key-").tempfile_in(dir)?;
        file.write_all(self.0.as_slice())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }
}
