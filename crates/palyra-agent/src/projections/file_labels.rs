//! Contents that runs wrote and that are worth less than other files, and those of them that people endorsed.

use memchr::memmem;
use palyra_common::{Confidentiality, Digest, Integrity, Label, RunId, Timestamp};
use palyra_flow::differs_from_a_file;
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use super::{from_json, json, parse, typed, typed_option};
use crate::machine::Input;
use crate::tape::{TapeEntry, kind as tape_kind};

/// Kinds of records about files.
pub(crate) mod kind {
    pub(crate) const ENDORSED: &str = "file.endorsed";
}

/// Payload of a `file.endorsed` record: a person looked at these bytes and answers for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEndorsed {
    /// The workspace in which they looked.
    pub(crate) workspace: String,
    /// The file that they looked at.
    pub(crate) path: String,
    /// What it held.
    pub(crate) digest: Digest,
    /// How many bytes that is, so that files of another size need not be hashed to be told from it; older records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// Who.
    pub(crate) by: String,
    /// Where, such as `unix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) via: Option<String>,
}

/// A content that a person answers for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndorsedFile {
    /// The workspace in which they looked.
    pub workspace: String,
    /// The file that they looked at.
    pub path: String,
    /// What it held.
    pub digest: Digest,
    /// How many bytes that is, if it is known.
    pub bytes: Option<u64>,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A labelled content, at one of the places where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledFile {
    /// The workspace, absolute and without links.
    pub workspace: String,
    /// The path in it, in its escaped text form.
    pub path: String,
    /// What was written.
    pub digest: Digest,
    /// How far it may be trusted and shown.
    pub label: Label,
    /// Whether there was no file of that name before, so that the name was chosen as well.
    pub named: bool,
    /// The run that wrote it last.
    pub run_id: Option<RunId>,
    /// The call that wrote it last.
    pub call_id: String,
    /// When.
    pub at: Timestamp,
    /// The record of the journal that says so.
    pub seq: u64,
}

/// The key under which a result has the labels of what its call wrote.
const WROTE: &[u8] = b"\"wrote\"";

pub(super) struct FileLabelTables;

impl Projection for FileLabelTables {
    fn name(&self) -> &'static str {
        "file_labels"
    }
    fn version(&self) -> u32 {
        2
    }
    fn tables(&self) -> &'static [&'static str] {
        &["file_labels", "endorsed_contents"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE file_labels (
                digest TEXT NOT NULL, workspace TEXT NOT NULL, path TEXT NOT NULL, label TEXT NOT NULL, named INTEGER NOT NULL,
                run_id TEXT, call_id TEXT NOT NULL, at INTEGER NOT NULL, seq INTEGER NOT NULL,
                PRIMARY KEY (digest, workspace, path)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX file_labels_by_age ON file_labels (seq);
            CREATE TABLE endorsed_contents (
                digest TEXT PRIMARY KEY NOT NULL, workspace TEXT NOT NULL, path TEXT NOT NULL, bytes INTEGER, by TEXT NOT NULL, at INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            // Almost no call writes anything that has a label, and reading every result once more would cost as much as the rest.
            tape_kind::TOOL_FINISHED if memmem::find(&record.payload, WROTE).is_some() => {
                let TapeEntry::Input(input) = parse(record)? else { return Ok(()) };
                for file in written_files(&input, record.run_id, record.at, record.seq) {
                    add(connection, &file)?;
                }
            }
            kind::ENDORSED => {
                let FileEndorsed { workspace, path, digest, bytes, by, .. } = parse(record)?;
                let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok());
                connection
                    .prepare_cached("INSERT OR REPLACE INTO endorsed_contents VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
                    .execute(params![digest.to_string(), workspace, path, bytes, by, record.at.0])?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// What a record says was endorsed, if it is about that.
pub(crate) fn endorsed_by(record: &StoredRecord) -> Result<Option<EndorsedFile>, ProjectionError> {
    if record.kind.as_ref() != kind::ENDORSED {
        return Ok(None);
    }
    let FileEndorsed { workspace, path, digest, bytes, by, .. } = parse(record)?;
    Ok(Some(EndorsedFile { workspace, path, digest, bytes, by, at: record.at }))
}

/// The contents that a finished call wrote and that are worth less than other files.
pub(crate) fn written_files(input: &Input, run_id: Option<RunId>, at: Timestamp, seq: u64) -> Vec<LabelledFile> {
    let Input::ToolFinished { call_id, result, .. } = input else { return Vec::new() };
    let Some(wrote) = &result.wrote else { return Vec::new() };
    let labelled = |change: &palyra_tools::FileChange| {
        let (digest, label) = (change.after?, wrote.label_of(&change.path)?);
        Some(LabelledFile {
            workspace: wrote.workspace.clone(),
            path: change.path.clone(),
            digest,
            label,
            named: change.before.is_none(),
            run_id,
            call_id: call_id.clone(),
            at,
            seq,
        })
    };
    result.changes.iter().filter_map(labelled).collect()
}

/// Adds a file; what was written twice has the worse of both labels.
fn add(connection: &Connection, file: &LabelledFile) -> Result<(), ProjectionError> {
    let key = params![file.digest.to_string(), file.workspace, file.path];
    let known = connection
        .prepare_cached("SELECT label, named FROM file_labels WHERE digest = ?1 AND workspace = ?2 AND path = ?3")?
        .query_row(key, |row| Ok((from_json::<Label>(row, 0)?, row.get::<_, bool>(1)?)))
        .optional()?;
    let (label, named) = match known {
        Some((Some(label), named)) => (label.join(&file.label), named || file.named),
        _ => (file.label.clone(), file.named),
    };
    connection
        .prepare_cached("INSERT OR REPLACE INTO file_labels VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
            file.digest.to_string(),
            file.workspace,
            file.path,
            json(&label)?,
            named,
            file.run_id.map(|id| id.to_string()),
            file.call_id,
            file.at.0,
            i64::try_from(file.seq).unwrap_or(i64::MAX),
        ])?;
    Ok(())
}

/// All contents that have a label now and were written after a record, oldest first. An endorsed one is as good as any file, but no less confidential than it was.
pub(crate) fn labelled_files(connection: &Connection, after: u64) -> rusqlite::Result<Vec<LabelledFile>> {
    let rows = connection
        .prepare_cached(
            "SELECT f.digest, f.workspace, f.path, f.label, f.named, f.run_id, f.call_id, f.at, f.seq, e.digest IS NOT NULL
             FROM file_labels f LEFT JOIN endorsed_contents e ON e.digest = f.digest WHERE f.seq > ?1 ORDER BY f.seq",
        )?
        .query_map([i64::try_from(after).unwrap_or(i64::MAX)], read)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows.into_iter().filter(|file| differs_from_a_file(&file.label)).collect())
}

/// Everything that people endorsed, oldest first.
pub(crate) fn endorsed_files(connection: &Connection) -> rusqlite::Result<Vec<EndorsedFile>> {
    connection
        .prepare_cached("SELECT digest, workspace, path, bytes, by, at FROM endorsed_contents ORDER BY at, digest")?
        .query_map([], |row| {
            Ok(EndorsedFile {
                digest: typed(row, 0)?,
                workspace: row.get(1)?,
                path: row.get(2)?,
                bytes: row.get::<_, Option<i64>>(3)?.and_then(|bytes| u64::try_from(bytes).ok()),
                by: row.get(4)?,
                at: Timestamp(row.get(5)?),
            })
        })?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<LabelledFile> {
    let untold = || Label::new(Integrity::Untrusted, Confidentiality::Secret);
    let mut label = from_json(row, 3)?.unwrap_or_else(untold);
    if row.get(9)? {
        label.integrity = label.integrity.min(Integrity::ToolTrusted);
    }
    Ok(LabelledFile {
        digest: typed(row, 0)?,
        workspace: row.get(1)?,
        path: row.get(2)?,
        label,
        named: row.get(4)?,
        run_id: typed_option(row, 5)?,
        call_id: row.get(6)?,
        at: Timestamp(row.get(7)?),
        seq: u64::try_from(row.get::<_, i64>(8)?).unwrap_or_default(),
    })
}
