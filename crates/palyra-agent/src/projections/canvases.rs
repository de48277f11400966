//! Canvases: what is on them now, the changes that led there, and which effect drew what.
//!
//! A change is kept as its patch; the document is what the patches make of the first one. Older changes than a viewer could still want are
//! dropped: whoever comes later gets the whole document.

use palyra_common::{CanvasId, Label, RunId, SessionId, Timestamp};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::{json, parse, typed};
use crate::canvas::{CanvasChanged, CanvasClosed, CanvasDrawn, CanvasOpened, kind};

/// Changes that are kept for viewers that lost their connection.
const KEPT_CHANGES: u64 = 64;
/// Bytes of patches that are told together: as many as a document may have.
const CHANGES_BYTES: u64 = 256 * 1024;

/// One canvas without its document.
#[derive(Debug, Clone, PartialEq)]
pub struct CanvasRow {
    /// Its id.
    pub canvas_id: CanvasId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The run that opened it.
    pub run_id: RunId,
    /// Its title.
    pub title: String,
    /// The version of its document.
    pub version: u64,
    /// How far what is on it may be trusted and shown.
    pub label: Label,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last drawn on.
    pub updated_at: Timestamp,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
}

/// Which canvases to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct CanvasFilter {
    /// Only those of one session.
    pub session_id: Option<SessionId>,
    /// Only those of sessions of one principal.
    pub owner: Option<String>,
    /// Also those that were closed.
    pub include_closed: bool,
    /// At most so many.
    pub limit: u32,
}

pub(super) struct Canvases;

impl Projection for Canvases {
    fn name(&self) -> &'static str {
        "canvases"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["canvases", "canvas_changes", "canvas_effects"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE canvases (
                canvas_id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, run_id TEXT NOT NULL, seq INTEGER NOT NULL,
                title TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, label TEXT NOT NULL,
                created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, closed_at INTEGER
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX canvases_by_session ON canvases (session_id, seq);
            CREATE INDEX canvases_by_seq ON canvases (seq);
            CREATE TABLE canvas_changes (
                canvas_id TEXT NOT NULL, version INTEGER NOT NULL, patch TEXT NOT NULL, PRIMARY KEY (canvas_id, version)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE canvas_effects (
                effect_id TEXT PRIMARY KEY NOT NULL, canvas_id TEXT NOT NULL, version INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::OPENED => open(connection, record),
            kind::CHANGED => change(connection, record),
            kind::CLOSED => {
                let closed: CanvasClosed = parse(record)?;
                connection
                    .prepare_cached("UPDATE canvases SET closed_at = ?2 WHERE canvas_id = ?1 AND closed_at IS NULL")?
                    .execute(params![closed.canvas_id.to_string(), record.at.0])?;
                connection
                    .prepare_cached("DELETE FROM canvas_changes WHERE canvas_id = ?1")?
                    .execute([closed.canvas_id.to_string()])?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn open(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let opened: CanvasOpened = parse(record)?;
    connection
        .prepare_cached(
            "INSERT INTO canvases (canvas_id, session_id, run_id, seq, title, version, document, label, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?8)",
        )?
        .execute(params![
            opened.canvas_id.to_string(),
            opened.session_id.to_string(),
            opened.run_id.to_string(),
            i64::try_from(record.seq).unwrap_or(i64::MAX),
            opened.title,
            opened.document.to_string(),
            json(&opened.label)?,
            record.at.0
        ])?;
    note_effect(connection, &opened.effect_id, opened.canvas_id, 1)
}

fn change(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let changed: CanvasChanged = parse(record)?;
    let id = changed.canvas_id.to_string();
    let document: String = connection
        .prepare_cached("SELECT document FROM canvases WHERE canvas_id = ?1")?
        .query_row([&id], |row| row.get(0))?;
    let refused = |message: String| ProjectionError::Refused(message);
    let document: Value = serde_json::from_str(&document).map_err(|error| refused(error.to_string()))?;
    let document =
        palyra_a2ui::apply_recorded(&document, &changed.patch).map_err(|error| refused(error.to_string()))?;
    let version = i64::try_from(changed.version).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "UPDATE canvases SET version = ?2, document = ?3, label = ?4, updated_at = ?5 WHERE canvas_id = ?1",
        )?
        .execute(params![id, version, document.to_string(), json(&changed.label)?, record.at.0])?;
    connection.prepare_cached("INSERT OR REPLACE INTO canvas_changes VALUES (?1, ?2, ?3)")?.execute(params![
        id,
        version,
        changed.patch.to_string()
    ])?;
    let oldest = i64::try_from(changed.version.saturating_sub(KEPT_CHANGES)).unwrap_or_default();
    connection
        .prepare_cached("DELETE FROM canvas_changes WHERE canvas_id = ?1 AND version <= ?2")?
        .execute(params![id, oldest])?;
    note_effect(connection, &changed.effect_id, changed.canvas_id, changed.version)
}

fn note_effect(connection: &Connection, effect: &str, canvas: CanvasId, version: u64) -> Result<(), ProjectionError> {
    connection.prepare_cached("INSERT OR REPLACE INTO canvas_effects VALUES (?1, ?2, ?3)")?.execute(params![
        effect,
        canvas.to_string(),
        i64::try_from(version).unwrap_or(i64::MAX)
    ])?;
    Ok(())
}

const COLUMNS: &str =
    "c.canvas_id, c.session_id, c.run_id, c.title, c.version, c.label, c.created_at, c.updated_at, c.closed_at";

fn read(row: &Row<'_>) -> rusqlite::Result<CanvasRow> {
    Ok(CanvasRow {
        canvas_id: typed(row, 0)?,
        session_id: typed(row, 1)?,
        run_id: typed(row, 2)?,
        title: row.get(3)?,
        version: unsigned(row, 4)?,
        label: from_text(row, 5)?,
        created_at: Timestamp(row.get(6)?),
        updated_at: Timestamp(row.get(7)?),
        closed_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
    })
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or_default())
}

fn from_text<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// One canvas with its document.
pub(crate) fn canvas(connection: &Connection, id: CanvasId) -> rusqlite::Result<Option<(CanvasRow, Value)>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS}, c.document FROM canvases c WHERE c.canvas_id = ?1"))?
        .query_row([id.to_string()], |row| Ok((read(row)?, from_text(row, 9)?)))
        .optional()
}

/// Canvases, newest first.
pub(crate) fn canvases(connection: &Connection, filter: &CanvasFilter) -> rusqlite::Result<Vec<CanvasRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM canvases c JOIN sessions s ON s.session_id = c.session_id
             WHERE (?1 IS NULL OR c.session_id = ?1) AND (?2 IS NULL OR s.owner = ?2) AND (?3 OR c.closed_at IS NULL)
             ORDER BY c.seq DESC LIMIT ?4"
        ))?
        .query_map(
            params![filter.session_id.map(|id| id.to_string()), filter.owner, filter.include_closed, filter.limit],
            read,
        )?
        .collect()
}

/// How many canvases of a session are open.
pub(crate) fn open_canvases(connection: &Connection, session: SessionId) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM canvases WHERE session_id = ?1 AND closed_at IS NULL")?
        .query_row([session.to_string()], |row| unsigned(row, 0))
}

/// What an effect drew, if it did.
pub(crate) fn canvas_effect(connection: &Connection, effect: &str) -> rusqlite::Result<Option<CanvasDrawn>> {
    connection
        .prepare_cached("SELECT canvas_id, version FROM canvas_effects WHERE effect_id = ?1")?
        .query_row([effect], |row| Ok(CanvasDrawn { canvas_id: typed(row, 0)?, version: unsigned(row, 1)? }))
        .optional()
}

/// The version of a canvas, and whether it is closed.
pub(crate) fn canvas_version(connection: &Connection, id: CanvasId) -> rusqlite::Result<Option<(u64, bool)>> {
    connection
        .prepare_cached("SELECT version, closed_at IS NOT NULL FROM canvases WHERE canvas_id = ?1")?
        .query_row([id.to_string()], |row| Ok((unsigned(row, 0)?, row.get(1)?)))
        .optional()
}

/// The patches after a version, oldest first, as far as they are kept; none if together they are larger than any document.
pub(crate) fn canvas_changes(connection: &Connection, id: CanvasId, after: u64) -> rusqlite::Result<Vec<(u64, Value)>> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let bytes = connection
        .prepare_cached(
            "SELECT coalesce(sum(length(CAST(patch AS BLOB))), 0) FROM canvas_changes WHERE canvas_id = ?1 AND version > ?2",
        )?
        .query_row(params![id.to_string(), after], |row| unsigned(row, 0))?;
    if bytes > CHANGES_BYTES {
        return Ok(Vec::new());
    }
    connection
        .prepare_cached(
            "SELECT version, patch FROM canvas_changes WHERE canvas_id = ?1 AND version > ?2 ORDER BY version",
        )?
        .query_map(params![id.to_string(), after], |row| Ok((unsigned(row, 0)?, from_text(row, 1)?)))?
        .collect()
}
