//! The journal's artifact store as tools see it.

use std::io::Read;
use std::sync::Arc;

use palyra_common::{Digest, SessionId, ToStableError as _};
use palyra_journal::{ArtifactStore, Journal, JournalError};
use palyra_tools::{Artifacts, ToolError};

use super::Shared;
use crate::projections;
use crate::spec::RunSpec;

/// How much of a content is in memory while it is stored.
const PIECE: usize = 64 << 10;

pub(super) struct JournalArtifacts(ArtifactStore);

impl JournalArtifacts {
    pub(super) fn new(journal: &Journal) -> Self {
        Self(journal.artifacts().clone())
    }
}

impl Artifacts for JournalArtifacts {
    fn put(&self, bytes: &[u8]) -> Result<Digest, ToolError> {
        self.0.put(bytes).map_err(|error| store_error(&error))
    }

    fn put_reader(&self, source: &mut dyn Read) -> Result<Digest, ToolError> {
        let mut incoming = self.0.receive().map_err(|error| store_error(&error))?;
        let mut piece = vec![0; PIECE];
        loop {
            let count = source.read(&mut piece).map_err(|error| ToolError::io("an artifact", error))?;
            match piece.get(..count) {
                Some([]) | None => break,
                Some(bytes) => incoming.write(bytes).map_err(|error| store_error(&error))?,
            }
        }
        incoming.finish().map(|(digest, _)| digest).map_err(|error| store_error(&error))
    }

    fn get_range(&self, digest: &Digest, offset: u64, len: usize) -> Result<Vec<u8>, ToolError> {
        match self.0.get_range(digest, offset, len) {
            Err(JournalError::NoSuchArtifact { .. }) => Err(ToolError::ArtifactNotFound { digest: *digest }),
            other => other.map_err(|error| store_error(&error)),
        }
    }

    fn len(&self, digest: &Digest) -> Result<Option<u64>, ToolError> {
        match self.0.len(digest) {
            Err(JournalError::NoSuchArtifact { .. }) => Ok(None),
            other => other.map(Some).map_err(|error| store_error(&error)),
        }
    }

    /// Nobody's run reads here; see [`RunArtifacts`].
    fn may_be_read(&self, _: &Digest) -> Result<bool, ToolError> {
        Ok(false)
    }
}

/// The same as the tools of one run see it: whatever was stored is there to be put back, and what the run's owner has may be read.
pub(super) struct RunArtifacts {
    stored: Arc<dyn Artifacts>,
    journal: Journal,
    owner: String,
    session_id: SessionId,
}

impl RunArtifacts {
    pub(super) fn of(shared: &Shared, spec: &RunSpec) -> Self {
        Self {
            stored: Arc::clone(&shared.artifacts),
            journal: shared.options.journal.clone(),
            owner: spec.owner.clone(),
            session_id: spec.session_id,
        }
    }
}

impl Artifacts for RunArtifacts {
    fn put(&self, bytes: &[u8]) -> Result<Digest, ToolError> {
        self.stored.put(bytes)
    }

    fn put_reader(&self, source: &mut dyn Read) -> Result<Digest, ToolError> {
        self.stored.put_reader(source)
    }

    fn get_range(&self, digest: &Digest, offset: u64, len: usize) -> Result<Vec<u8>, ToolError> {
        self.stored.get_range(digest, offset, len)
    }

    fn len(&self, digest: &Digest) -> Result<Option<u64>, ToolError> {
        self.stored.len(digest)
    }

    fn may_be_read(&self, digest: &Digest) -> Result<bool, ToolError> {
        let (digest, owner, session_id) = (*digest, self.owner.clone(), self.session_id);
        let asked = self.journal.read_blocking(move |reader| {
            Ok(projections::artifact_is_of(reader.connection(), &digest, &owner, session_id)?)
        });
        asked.map_err(|error| store_error(&error))
    }
}

fn store_error(error: &JournalError) -> ToolError {
    ToolError::Internal(error.to_stable().to_string())
}
