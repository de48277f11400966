//! Whose an artifact is: contents are stored once, and read by those whose runs and sessions have them.
//!
//! Counted is what the engine itself put on record: whole outputs of tools, files before and after a change, images, files that were handed over. What a model
//! writes into a call or an outside server into its data makes nothing anybody's.

use palyra_common::{Digest, SessionId};
use palyra_journal::{KEPT_ARTIFACT, Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Deserialize;

use super::parse;
use crate::machine::Input;
use crate::tape::{Note, TapeEntry, kind};

/// The daemon's record of a file that somebody handed over.
const ATTACHMENT_ADDED: &str = "attachment.added";

/// What matters here of that record.
#[derive(Deserialize)]
struct AttachmentAdded {
    owner: String,
    artifact: Digest,
}

pub(super) struct ArtifactOwners;

impl Projection for ArtifactOwners {
    fn name(&self) -> &'static str {
        "artifact_owners"
    }
    fn version(&self) -> u32 {
        2
    }
    fn tables(&self) -> &'static [&'static str] {
        &["artifact_owners", "artifact_runs", "artifacts_kept"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(&format!(
            "CREATE TABLE artifact_owners (
                artifact TEXT NOT NULL, owner TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (artifact, owner, session_id)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE artifact_runs (
                run_id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, session_id TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE artifacts_kept ({KEPT_ARTIFACT} TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID",
        ))
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::RUN_ACCEPTED => {
                let TapeEntry::Input(Input::Accepted(spec)) = parse(record)? else { return Ok(()) };
                let session = spec.session_id.to_string();
                connection
                    .prepare_cached("INSERT OR REPLACE INTO artifact_runs VALUES (?1, ?2, ?3)")?
                    .execute(params![spec.run_id.to_string(), spec.owner, session])?;
                for image in spec.attachments.iter().filter_map(|item| item.image) {
                    add(connection, &image.digest, &spec.owner, &session)?;
                    keep(connection, &image.digest)?;
                }
            }
            kind::TOOL_FINISHED => {
                let TapeEntry::Input(Input::ToolFinished { result, .. }) = parse(record)? else { return Ok(()) };
                // What a file holds afterwards is in the workspace, and not kept.
                let before = result.changes.iter().filter_map(|change| change.before);
                for digest in before.chain(result.artifact) {
                    keep(connection, &digest)?;
                }
                let Some(run_id) = record.run_id else { return Ok(()) };
                let run = connection
                    .prepare_cached("SELECT owner, session_id FROM artifact_runs WHERE run_id = ?1")?
                    .query_row([run_id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                let Some((owner, session)): Option<(String, String)> = run else { return Ok(()) };
                let changed = result.changes.iter().flat_map(|change| [change.before, change.after]);
                for digest in changed.chain([result.artifact]).flatten() {
                    add(connection, &digest, &owner, &session)?;
                }
            }
            ATTACHMENT_ADDED => {
                let AttachmentAdded { owner, artifact } = parse(record)?;
                add(connection, &artifact, &owner, "")?;
                keep(connection, &artifact)?;
            }
            kind::RUN_UNDONE | kind::RUN_PARTLY_UNDONE => {
                let TapeEntry::Note(Note::Undone { changes, .. }) = parse(record)? else { return Ok(()) };
                // Undoing can be taken back as well.
                for digest in changes.iter().filter_map(|change| change.before) {
                    keep(connection, &digest)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn add(connection: &Connection, artifact: &Digest, owner: &str, session: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO artifact_owners VALUES (?1, ?2, ?3)")?
        .execute(params![artifact.to_string(), owner, session])
        .map(|_| ())
}

/// Notes that an artifact has to be there from now on.
fn keep(connection: &Connection, artifact: &Digest) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO artifacts_kept VALUES (?1)")?
        .execute([artifact.to_string()])
        .map(|_| ())
}

/// Whether an artifact is of this owner's runs and files, or of this session.
pub(crate) fn artifact_is_of(
    connection: &Connection,
    artifact: &Digest,
    owner: &str,
    session: SessionId,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM artifact_owners WHERE artifact = ?1 AND (owner = ?2 OR session_id = ?3)")?
        .exists(params![artifact.to_string(), owner, session.to_string()])
}
