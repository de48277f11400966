//! The journal's artifact store as tools see it.

use palyra_common::{Digest, ToStableError as _};
use palyra_journal::{ArtifactStore, Journal, JournalError};
use palyra_tools::{Artifacts, ToolError};

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
}

fn store_error(error: &JournalError) -> ToolError {
    ToolError::Internal(error.to_stable().to_string())
}
