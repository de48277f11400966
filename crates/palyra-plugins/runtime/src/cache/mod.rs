//! Compiled code on disk.
//!
//! A file is named after the module's digest and the engine's fingerprint and begins with a code over all of it (HMAC-SHA-256) under a key that only the daemon
//! can read. Loading machine code is running it, so a file is used only if that code is right for exactly this module and this engine: a flipped bit,
//! a file of another module, of another version, a link, or one that somebody else wrote is deleted, reported and made anew. Nothing here fails a call: without a usable
//! file the module is compiled.

mod key;
mod trusted;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use palyra_common::Digest;
use sha2::Sha256;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};
use zeroize::Zeroizing;

use crate::error::PluginError;
use crate::scan::PluginKind;

pub use key::CacheKey;

/// First bytes of a file; the digit is raised when the layout changes.
const MAGIC: &[u8; 16] = b"palyra-cwasm-1\n\0";
/// Length of the code that follows.
const MAC_BYTES: usize = 32;
/// Larger files are not ours.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Where compiled code is kept.
#[derive(Debug)]
pub struct CacheOptions {
    /// The folder; made with 0700 if it is not there.
    pub dir: PathBuf,
    /// What its files are authenticated with.
    pub key: CacheKey,
}

/// What the cache did since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Modules loaded from their file.
    pub hits: u64,
    /// Modules without a file.
    pub misses: u64,
    /// Files that were not what they should be, and were deleted.
    pub refused: u64,
    /// Files written.
    pub stored: u64,
    /// Files that could not be written.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    refused: AtomicU64,
    stored: AtomicU64,
    failed: AtomicU64,
}

/// The folder with its key, for one engine.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
    key: CacheKey,
    fingerprint: Digest,
    counts: Counts,
}

/// Machine code, ready to be linked.
#[derive(Debug, Clone)]
pub(crate) enum Code {
    Component(Component),
    Module(Module),
}

impl Cache {
    pub(crate) fn open(options: CacheOptions, fingerprint: Digest) -> Result<Self, PluginError> {
        make_private_dir(&options.dir)
            .map_err(|error| PluginError::Cache(format!("`{}`: {error}", options.dir.display())))?;
        Ok(Self { dir: options.dir, key: options.key, fingerprint, counts: Counts::default() })
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            hits: read(&self.counts.hits),
            misses: read(&self.counts.misses),
            refused: read(&self.counts.refused),
            stored: read(&self.counts.stored),
            failed: read(&self.counts.failed),
        }
    }

    /// The compiled code of a module, if there is a file for it that can be trusted.
    pub(crate) fn load(&self, engine: &Engine, digest: Digest, kind: PluginKind) -> Option<Code> {
        let path = self.path(digest);
        let loaded = match read_regular(&path) {
            Ok(None) => {
                self.counts.misses.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            Ok(Some(bytes)) => self
                .authentic(&bytes, digest, kind)
                .and_then(|code| trusted::load(engine, code, kind).map_err(|error| error.to_string())),
            Err(error) => Err(error.to_string()),
        };
        match loaded {
            Ok(code) => {
                self.counts.hits.fetch_add(1, Ordering::Relaxed);
                Some(code)
            }
            Err(reason) => {
                tracing::warn!(path = %path.display(), reason, "a cached compiled plugin was rejected; compiling it again");
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                remove_whatever(&path);
                None
            }
        }
    }

    /// Keeps compiled code. What cannot be written is compiled again next time.
    pub(crate) fn store(&self, digest: Digest, kind: PluginKind, code: &[u8]) {
        match self.write(digest, kind, code) {
            Ok(()) => self.counts.stored.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                tracing::warn!(dir = %self.dir.display(), %error, "a compiled plugin could not be cached");
                self.counts.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }

    /// Removes the files of a module, of all engines.
    pub(crate) fn forget(&self, digest: Digest) -> io::Result<()> {
        let prefix = digest.to_hex();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
                remove_whatever(&entry.path());
            }
        }
        Ok(())
    }

    fn write(&self, digest: Digest, kind: PluginKind, code: &[u8]) -> io::Result<()> {
        // Files of older engines for the same module will never be read again.
        self.forget(digest)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.dir)?;
        file.write_all(MAGIC)?;
        file.write_all(&self.mac(digest, kind, code))?;
        file.write_all(code)?;
        file.persist(self.path(digest)).map_err(|error| error.error)?;
        Ok(())
    }

    fn path(&self, digest: Digest) -> PathBuf {
        let engine: String = self.fingerprint.to_hex().chars().take(16).collect();
        self.dir.join(format!("{}-{engine}.cwasm", digest.to_hex()))
    }

    /// The code inside a file, if the file was written under our key for this module and this engine.
    fn authentic<'a>(&self, bytes: &'a [u8], digest: Digest, kind: PluginKind) -> Result<&'a [u8], String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it has the wrong header")?;
        let (mac, code) = rest.split_at_checked(MAC_BYTES).ok_or("it is truncated")?;
        match self.authenticate(digest, kind, code).verify_slice(mac) {
            Ok(()) => Ok(code),
            Err(_) => Err("it was not written by this daemon for this module and this engine".to_owned()),
        }
    }

    fn mac(&self, digest: Digest, kind: PluginKind, code: &[u8]) -> [u8; MAC_BYTES] {
        self.authenticate(digest, kind, code).finalize().into_bytes().into()
    }

    /// Everything before the code has a fixed length, so no two files give the same input.
    fn authenticate(&self, digest: Digest, kind: PluginKind, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.key.hmac();
        mac.update(MAGIC);
        mac.update(&[match kind {
            PluginKind::Component => 1,
            PluginKind::CoreModule => 2,
        }]);
        mac.update(&digest.0);
        mac.update(&self.fingerprint.0);
        mac.update(code);
        mac
    }
}

impl CacheKey {
    fn hmac(&self) -> Hmac<Sha256> {
        // HMAC fills a short key with zeros up to the hash's block.
        let mut block = Zeroizing::new([0; 64]);
        for (slot, byte) in block.iter_mut().zip(self.bytes()) {
            *slot = *byte;
        }
        Hmac::<Sha256>::new((&*block).into())
    }
}

/// The contents of a file; `None` if there is none. Links and other things that are not files are errors.
fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(MAX_FILE_BYTES)).unwrap_or(0));
    fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("it is too large"));
    }
    Ok(Some(bytes))
}

/// Removes a file, a link or a folder that stands where a file should be.
fn remove_whatever(path: &Path) {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a cached compiled plugin cannot be removed");
    }
}

fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        builder.mode(0o700);
        builder.create(dir)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
    }
    #[cfg(not(unix))]
    builder.create(dir)
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
