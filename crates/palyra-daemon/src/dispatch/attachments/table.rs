//! Who handed over which file. Bytes are kept once, whoever brought them; that somebody knows a digest does not make the file theirs.

use palyra_common::{Digest, Timestamp};
use palyra_journal::rusqlite::{Connection, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};

use crate::dispatch::records::read;

/// A file was handed over.
pub(super) const ADDED: &str = "attachment.added";

/// A file was handed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AttachmentAdded {
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) artifact: Digest,
    pub(super) size_bytes: u64,
    pub(super) at: Timestamp,
}

/// The table.
pub(in crate::dispatch) struct Attachments;

impl Projection for Attachments {
    fn name(&self) -> &'static str {
        "attachments"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["attachments"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE attachments (owner TEXT NOT NULL, artifact TEXT NOT NULL, PRIMARY KEY (owner, artifact))
             STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        if record.kind.as_ref() == ADDED {
            let added: AttachmentAdded = read(record)?;
            connection
                .prepare_cached("INSERT OR IGNORE INTO attachments VALUES (?1, ?2)")?
                .execute(params![added.owner, added.artifact.to_string()])?;
        }
        Ok(())
    }
}

/// The first of these files that this owner did not hand over.
pub(super) fn first_missing(
    connection: &Connection,
    owner: &str,
    wanted: &[Digest],
) -> rusqlite::Result<Option<Digest>> {
    let mut known = connection.prepare_cached("SELECT 1 FROM attachments WHERE owner = ?1 AND artifact = ?2")?;
    for digest in wanted {
        if !known.exists(params![owner, digest.to_string()])? {
            return Ok(Some(*digest));
        }
    }
    Ok(None)
}
