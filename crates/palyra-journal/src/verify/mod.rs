//! Verification: does the state hold exactly the log that was signed?
//!
//! Reads only, over one snapshot, beside a running writer or without one; one pass, in constant memory. [`walk`] goes through
//! the records, [`expect`] holds what signed statements say about them, [`derived`] compares what was derived from the log,
//! [`files`] looks at artifacts and segments. An unsound state is never an error of this function: it is what the report says.

mod derived;
mod expect;
mod files;
mod report;
mod restores;
mod walk;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use crate::anchor::{self, AnchorState};
use crate::checkpoint::{self, SignedCheckpoint};
use crate::damage;
use crate::db;
use crate::error::JournalError;
use crate::keys;
use crate::layout::Layout;
use crate::position::Position;
use crate::projection::Projection;
use crate::table_digests::StoredDigests;

use expect::{Expectations, Statement};
pub use report::{Problem, VerifyProgress, VerifyReport};
pub(crate) use restores::RESTORE_UNACKNOWLEDGED;
use walk::Walk;
pub(crate) use walk::resume;

/// Called now and then while a long verification runs.
pub type ProgressCallback = Arc<dyn Fn(VerifyProgress) + Send + Sync>;

/// What to verify beyond the state itself.
#[derive(Clone, Default)]
pub struct VerifyOptions {
    /// A copy of an anchor, or of a checkpoint as JSON, that was kept somewhere else.
    pub anchor: Option<PathBuf>,
    /// Told how far verification is.
    pub progress: Option<ProgressCallback>,
    /// Projections to rebuild and compare. Those in the database that are not given here are named in the report as unchecked.
    pub projections: Vec<Arc<dyn Projection>>,
}

impl fmt::Debug for VerifyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyOptions").field("anchor", &self.anchor).finish_non_exhaustive()
    }
}

/// Verifies the state below a root.
///
/// # Errors
/// `journal_not_found` if there never was a journal, or an unreadable file given in the options. What is wrong with the
/// state itself is in the report.
pub fn verify(root: &Path, options: VerifyOptions) -> Result<VerifyReport, JournalError> {
    let layout = Layout::new(root);
    let mut report = VerifyReport::default();
    // The anchor is read before the snapshot is taken: whatever it says must then be in the snapshot.
    let anchored = anchor::read(&layout.anchor())?;
    let outer = anchor::read(&layout.outer_anchor())?;
    if let Some(marker) = damage::marker(&layout)? {
        report.problem(marker.position, "journal_set_aside", marker.reason);
    }
    if !layout.database().exists() {
        if anchored == AnchorState::Missing && outer == AnchorState::Missing && report.problems.is_empty() {
            return Err(JournalError::NoJournal { root: root.to_owned() });
        }
        let position = Position::File { file: layout.database() };
        report.problem(position, "database_missing", "the database is missing; no records can be read");
        return Ok(report);
    }
    let external = options.anchor.as_deref().map(external_statement).transpose()?;
    match db::open_reader(&layout.database()).and_then(|connection| snapshot(&connection).map(|()| connection)) {
        Ok(connection) => inspect(&layout, &connection, [&anchored, &outer], external, options, &mut report),
        Err(error) => report.problem(
            Position::Offset { file: layout.database(), offset: 0 },
            "database_unreadable",
            format!("no records can be read, starting at record 1: {error}"),
        ),
    }
    Ok(report)
}

/// From here on the connection sees one state of the database.
fn snapshot(connection: &Connection) -> Result<(), JournalError> {
    connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    Ok(())
}

fn inspect(
    layout: &Layout,
    connection: &Connection,
    [anchored, outer]: [&AnchorState; 2],
    external: Option<SignedCheckpoint>,
    options: VerifyOptions,
    report: &mut VerifyReport,
) {
    let version = match db::version(connection) {
        Ok(version) if (1..=db::newest_version()).contains(&version) => version,
        Ok(version) => {
            let message = format!("the schema has version {version}, which this release does not support");
            report.problem(Position::File { file: layout.database() }, "schema_unknown", message);
            return;
        }
        Err(error) => {
            report.problem(Position::File { file: layout.database() }, "database_unreadable", error.to_string());
            return;
        }
    };
    let keys = keys::public_keys(layout).unwrap_or_else(|error| {
        report.problem(Position::File { file: layout.public_keys() }, "key_unreadable", error.to_string());
        Vec::new()
    });
    if keys.is_empty() {
        let message = "there is no public key to check signatures with";
        report.problem(Position::File { file: layout.public_keys() }, "key_missing", message);
    }
    let id = match checkpoint::read_id(connection) {
        Ok(Some(id)) => Some(id),
        Ok(None) => {
            report.problem(table("meta"), "journal_id_missing", "the journal's id is missing");
            None
        }
        Err(error) => {
            report.problem(table("meta"), "journal_id_unreadable", error.to_string());
            None
        }
    };
    let mut expectations = Expectations::new(keys, id);
    match id.map(|id| checkpoint::read_head(connection, id)) {
        Some(Ok(Some(head))) => expectations.add(Statement::Head, head, report),
        Some(Ok(None)) => report.problem(table("head"), "head_missing", "the signed head is missing"),
        Some(Err(error)) => report.problem(table("head"), "head_unreadable", error.to_string()),
        None => {}
    }
    let mut anchors = vec![(layout.anchor(), anchored)];
    // Older releases kept no anchor outside `journal/`.
    let fresh = StoredDigests::read(connection).is_ok_and(|stored| stored.unbuilt);
    if version >= 4 && !(fresh && *outer == AnchorState::Missing) {
        anchors.push((layout.outer_anchor(), outer));
    }
    for (file, anchored) in anchors {
        if anchor::lost_a_copy(&file) {
            let message =
                format!("one of the two copies in `{}`: it cannot be read, as a crash may leave it", file.display());
            report.unverified.push(message);
        }
        match anchored {
            AnchorState::Says(anchored) => expectations.add(Statement::Anchor, (**anchored).clone(), report),
            AnchorState::Missing if expectations.last_count() == 0 => {}
            AnchorState::Missing => {
                report.problem(Position::File { file }, "anchor_missing", "the anchor is missing");
            }
            AnchorState::Unreadable => {
                report.problem(Position::File { file }, "anchor_unreadable", "the anchor cannot be read");
            }
        }
    }
    if let Some(external) = external {
        expectations.add(Statement::External, external, report);
    }
    let scratch = derived::Scratch::new(connection, version, &options.projections, report);
    let mut walk = Walk::new(layout, connection, expectations, scratch, options.progress, report);
    walk.run(version);
    let (scratch, head, keys) = walk.finish();
    keys.report(report);
    derived::compare(connection, scratch, report);
    if version >= 4 {
        derived::digests(layout, connection, head, report);
    }
    derived::structure(layout, connection, report);
    files::artifacts(layout, report);
    files::kept(layout, connection, report);
}

/// A table as a whole.
fn table(name: &str) -> Position {
    Position::Table { table: name.to_owned(), row: 0 }
}

/// Reads a statement that was kept elsewhere: an anchor file or a checkpoint as JSON.
fn external_statement(path: &Path) -> Result<SignedCheckpoint, JournalError> {
    if let AnchorState::Says(checkpoint) = anchor::read(path)? {
        return Ok(*checkpoint);
    }
    let bytes = std::fs::read(path).map_err(|e| JournalError::file("read", path, e))?;
    serde_json::from_slice(&bytes).map_err(|e| JournalError::file("read", path, e.into()))
}
