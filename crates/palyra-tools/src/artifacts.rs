//! The port to content-addressed storage, and a store in memory.
//!
//! The journal implements [`Artifacts`] for real; this crate only says what it needs. All methods block and are called off the
//! asynchronous runtime.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};

use palyra_common::Digest;

use crate::ToolError;

/// Content-addressed storage.
pub trait Artifacts: Send + Sync {
    /// Stores bytes durably; storing the same bytes again is no work.
    fn put(&self, bytes: &[u8]) -> Result<Digest, ToolError>;

    /// Stores all that can be read, without ever holding it whole.
    fn put_reader(&self, source: &mut dyn Read) -> Result<Digest, ToolError>;

    /// Up to `len` bytes from `offset`; fewer at the end, none beyond it; an unknown digest is `artifact_not_found`.
    fn get_range(&self, digest: &Digest, offset: u64, len: usize) -> Result<Vec<u8>, ToolError>;

    /// The size, or `None` if there is no such artifact.
    fn len(&self, digest: &Digest) -> Result<Option<u64>, ToolError>;

    /// Whether the model of this call may read it. To know a digest is not enough: contents are stored once for everybody.
    fn may_be_read(&self, digest: &Digest) -> Result<bool, ToolError>;
}

/// Artifacts in memory: nothing survives the process. For tests and measurements.
#[derive(Debug, Default)]
pub struct MemoryArtifacts(Mutex<HashMap<Digest, Vec<u8>>>);

impl MemoryArtifacts {
    fn map(&self) -> MutexGuard<'_, HashMap<Digest, Vec<u8>>> {
        // The map is whole between any two statements, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Artifacts for MemoryArtifacts {
    fn put(&self, bytes: &[u8]) -> Result<Digest, ToolError> {
        let digest = Digest::of(bytes);
        self.map().entry(digest).or_insert_with(|| bytes.to_vec());
        Ok(digest)
    }

    fn put_reader(&self, source: &mut dyn Read) -> Result<Digest, ToolError> {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|error| ToolError::io("an artifact", error))?;
        self.put(&bytes)
    }

    fn get_range(&self, digest: &Digest, offset: u64, len: usize) -> Result<Vec<u8>, ToolError> {
        let map = self.map();
        let bytes = map.get(digest).ok_or(ToolError::ArtifactNotFound { digest: *digest })?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.iter().skip(start).take(len).copied().collect())
    }

    fn len(&self, digest: &Digest) -> Result<Option<u64>, ToolError> {
        Ok(self.map().get(digest).map(|bytes| bytes.len() as u64))
    }

    fn may_be_read(&self, digest: &Digest) -> Result<bool, ToolError> {
        Ok(self.map().contains_key(digest))
    }
}

/// All bytes of an artifact, or `artifact_not_found`.
pub(crate) fn read_whole(artifacts: &dyn Artifacts, digest: &Digest) -> Result<Vec<u8>, ToolError> {
    let missing = || ToolError::ArtifactNotFound { digest: *digest };
    let length = artifacts.len(digest)?.ok_or_else(missing)?;
    let length = usize::try_from(length).map_err(|_| missing())?;
    let bytes = artifacts.get_range(digest, 0, length)?;
    // A store that hands out other bytes than asked for must not end up in somebody's file.
    if Digest::of(&bytes) == *digest { Ok(bytes) } else { Err(missing()) }
}
