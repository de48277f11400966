//! What was derived from the log: projections are rebuilt in a scratch database and compared row by row, the schema and
//! the structure of the database are checked as well, because an index or a trigger that someone slipped in can hide a record.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};

use super::report::VerifyReport;
use crate::checkpoint::JournalId;
use crate::convert::to_u64;
use crate::db;
use crate::error::JournalError;
use crate::keys::JournalKey;
use crate::layout::Layout;
use crate::position::Position;
use crate::projection::{self, Projection, Registered};
use crate::record::{Head, StoredRecord};
use crate::restored;
use crate::table_digests::{self, OWN, StoredDigests};

/// Size of a page; what SQLite calls page n begins at (n - 1) times this.
const PAGE_BYTES: u64 = 4096;

/// The scratch database into which projections are rebuilt while the records pass by.
pub(super) struct Scratch {
    connection: Option<Connection>,
    projections: Vec<Arc<dyn Projection>>,
    unchecked: Vec<String>,
    other_tables: Vec<String>,
    quarantined: BTreeSet<(String, u64)>,
}

impl Scratch {
    pub(super) fn new(
        database: &Connection,
        version: i64,
        projections: &[Arc<dyn Projection>],
        report: &mut VerifyReport,
    ) -> Self {
        let registered = projection::registered(database).unwrap_or_else(|error| {
            report.problem(super::table("projections"), "projections_unreadable", error.to_string());
            Vec::new()
        });
        let given = projection::with_own(projections);
        let known = |r: &Registered| given.iter().any(|p| p.name() == r.name && i64::from(p.version()) == r.version);
        let (checked, unchecked): (Vec<_>, Vec<_>) = registered.into_iter().partition(known);
        let projections: Vec<_> = given.into_iter().filter(|p| checked.iter().any(|r| r.name == p.name())).collect();
        let other_tables = unchecked.iter().flat_map(|r| r.tables.clone()).collect();
        let unchecked = unchecked.into_iter().map(|r| r.name).collect();
        let connection = match scratch_database(version, &projections) {
            Ok(connection) => Some(connection),
            Err(error) => {
                report.problem(super::table("projections"), "scratch_failed", error.to_string());
                None
            }
        };
        let quarantined = if version >= 4 { quarantined(database).unwrap_or_default() } else { BTreeSet::new() };
        Self { connection, projections, unchecked, other_tables, quarantined }
    }

    /// Applies a record to every projection. One that refuses it goes on without it, as it did when it was built; a refusal that nobody knows of is a problem.
    pub(super) fn apply(&mut self, record: &StoredRecord, report: &mut VerifyReport) {
        let Some(connection) = &self.connection else { return };
        let projections: Vec<_> = self.projections.iter().collect();
        match projection::apply_tolerantly(connection, &projections, record, &mut || ()) {
            Ok(refusals) => {
                for (name, reason) in refusals {
                    if self.quarantined.contains(&(name.to_owned(), record.seq)) {
                        report.quarantined += 1;
                        continue;
                    }
                    let message = format!("projection `{name}` rejects it: {reason}");
                    report.problem(Position::Record { seq: record.seq }, "projection_refused", message);
                }
            }
            Err(error) => {
                report.problem(Position::Record { seq: record.seq }, "scratch_failed", error.to_string());
                self.give_up();
            }
        }
    }

    /// Stops comparing: a log that is unsound itself gives other projections, which would say nothing new.
    pub(super) fn give_up(&mut self) {
        self.connection = None;
    }
}

fn quarantined(database: &Connection) -> rusqlite::Result<BTreeSet<(String, u64)>> {
    let mut statement = database.prepare("SELECT projection, seq FROM quarantined")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, to_u64(row.get(1)?))))?;
    rows.collect()
}

fn scratch_database(version: i64, projections: &[Arc<dyn Projection>]) -> Result<Connection, JournalError> {
    let connection = db::open_scratch()?;
    db::migrate_to(&connection, version)?;
    for projection in projections {
        projection.create(&connection)?;
    }
    connection.execute_batch("BEGIN")?;
    Ok(connection)
}

/// Compares schema and contents of the rebuilt projections with the database.
pub(super) fn compare(database: &Connection, scratch: Scratch, report: &mut VerifyReport) {
    report.unchecked_projections = scratch.unchecked;
    let Some(rebuilt) = scratch.connection else {
        report.unchecked_projections.extend(scratch.projections.iter().map(|p| p.name().to_owned()));
        return;
    };
    compare_schema(database, &rebuilt, &scratch.other_tables, report);
    for projection in &scratch.projections {
        for table in projection.tables() {
            if let Err(error) = compare_table(database, &rebuilt, table, report) {
                report.problem(super::table(table), "projection_unreadable", error.to_string());
            }
        }
        report.projections.push(projection.name().to_owned());
    }
}

fn compare_schema(database: &Connection, rebuilt: &Connection, ignored: &[String], report: &mut VerifyReport) {
    let (found, wanted) = match (schema(database, ignored), schema(rebuilt, ignored)) {
        (Ok(found), Ok(wanted)) => (found, wanted),
        (Err(error), _) | (_, Err(error)) => {
            report.problem(super::table("sqlite_schema"), "schema_unreadable", error.to_string());
            return;
        }
    };
    for (name, _) in found.symmetric_difference(&wanted) {
        report.problem(super::table(name), "schema_changed", "it differs from this release's definition");
    }
}

fn schema(connection: &Connection, ignored: &[String]) -> rusqlite::Result<BTreeSet<(String, String)>> {
    let mut statement = connection.prepare("SELECT name, tbl_name, type, coalesce(sql, '') FROM sqlite_schema")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
    })?;
    let mut entries = BTreeSet::new();
    for row in rows {
        let (name, table, kind, sql) = row?;
        // The tables `sqlite_…` hold statistics at most.
        let internal = kind == "table" && name.starts_with("sqlite_");
        if !internal && !ignored.contains(&table) {
            entries.insert((name, format!("{kind} {sql}")));
        }
    }
    Ok(entries)
}

/// Both tables in the order of all their columns, side by side; the first difference is named.
fn compare_table(
    database: &Connection,
    rebuilt: &Connection,
    table: &str,
    report: &mut VerifyReport,
) -> Result<(), JournalError> {
    let columns = rebuilt.prepare(&format!("SELECT * FROM {table}"))?.column_count();
    let order: Vec<String> = (1..=columns).map(|n| n.to_string()).collect();
    let sql = format!("SELECT * FROM {table} ORDER BY {}", order.join(", "));
    let mut left_statement = database.prepare(&sql)?;
    let mut right_statement = rebuilt.prepare(&sql)?;
    let mut left = left_statement.query([])?;
    let mut right = right_statement.query([])?;
    let mut number = 0;
    loop {
        number += 1;
        let equal = match (left.next()?, right.next()?) {
            (None, None) => return Ok(()),
            (Some(found), Some(wanted)) => same(found, wanted, columns)?,
            _ => false,
        };
        if !equal {
            let position = Position::Table { table: table.to_owned(), row: number };
            report.problem(position, "projection_changed", "it differs from what the log yields");
            return Ok(());
        }
    }
}

fn same(left: &Row<'_>, right: &Row<'_>, columns: usize) -> rusqlite::Result<bool> {
    for column in 0..columns {
        let (left, right) = (left.get_ref(column)?, right.get_ref(column)?);
        let equal = match (left, right) {
            (ValueRef::Real(a), ValueRef::Real(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares tables with the digests that the writer keeps of them. Only the holder of the private key can.
pub(super) fn digests(
    layout: &Layout,
    database: &Connection,
    head: Option<(JournalId, Head)>,
    report: &mut VerifyReport,
) {
    let (key, (id, head)) = match (JournalKey::read(layout), head) {
        (Ok(key), Some(head)) => (key, head),
        (Err(error), _) => {
            report.unverified.push(format!("digests of tables: {error}"));
            return;
        }
        (_, None) => {
            report.unverified.push("digests of tables: the end of the log is unknown".to_owned());
            return;
        }
    };
    let stored = match StoredDigests::read(database) {
        Ok(stored) => stored,
        Err(error) => {
            report.problem(super::table("table_digests"), "digests_unreadable", error.to_string());
            return;
        }
    };
    if stored.unbuilt && !layout.outer_anchor().exists() {
        report.unverified.push("digests of tables: there are none before the daemon has started once".to_owned());
        return;
    }
    if let Some(note) = restored::read(layout).ok().flatten().filter(|note| !note.started) {
        let message = "this state was restored and not started since; from its next start on it is signed by";
        report.unverified.push(format!("digests of tables: {message} {}", note.key_id));
        return;
    }
    if stored.tampered || !stored.are_genuine(key.tables(), id, head) {
        let message = "these are not the digests that the journal stored for the end of its log";
        report.problem(super::table("table_digests"), "digests_changed", message);
        return;
    }
    for table in OWN {
        compare_digest(database, &stored, &key, table, "table_changed", report);
    }
    // What could not be built from the log here is at least what the writer made of it.
    let registered = projection::registered(database).unwrap_or_default();
    let unchecked = std::mem::take(&mut report.unchecked_projections);
    for name in unchecked {
        let tables = registered.iter().find(|r| r.name == name).map(|r| r.tables.clone()).unwrap_or_default();
        for table in &tables {
            compare_digest(database, &stored, &key, table, "projection_changed", report);
        }
        report.projections_by_digest.push(name);
    }
}

fn compare_digest(
    database: &Connection,
    stored: &StoredDigests,
    key: &JournalKey,
    table: &str,
    code: &str,
    report: &mut VerifyReport,
) {
    match (stored.of(table), table_digests::scan(database, key.tables(), table)) {
        (Some(stored), Ok(found)) if stored == found => {}
        (Some(_), Ok(_)) => report.problem(super::table(table), code, "its rows are not those that the journal wrote"),
        (None, _) => report.problem(super::table(table), "digests_changed", "its digest is missing"),
        (_, Err(error)) => report.problem(super::table(table), code, error.to_string()),
    }
}

/// SQLite's own check of pages and indexes.
pub(super) fn structure(layout: &Layout, database: &Connection, report: &mut VerifyReport) {
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = database.prepare("PRAGMA integrity_check(20)")?;
        let rows = statement.query_map([], |row| row.get::<_, Value>(0))?;
        rows.map(|row| {
            row.map(|value| match value {
                Value::Text(text) => text,
                other => format!("{other:?}"),
            })
        })
        .collect()
    };
    match read() {
        Ok(messages) => {
            for message in messages.iter().filter(|message| *message != "ok") {
                report.problem(page_position(layout, message), "database_structure", message.replace('\n', " "));
            }
        }
        Err(error) => {
            let position = Position::File { file: layout.database() };
            report.problem(position, "database_structure", error.to_string());
        }
    }
}

/// SQLite names pages in its messages; a byte offset is easier to look at.
fn page_position(layout: &Layout, message: &str) -> Position {
    let file = layout.database();
    let page = message
        .split_once("page ")
        .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next())
        .and_then(|digits| digits.parse::<u64>().ok())
        .and_then(|page| page.checked_sub(1));
    match page {
        Some(page) => Position::Offset { file, offset: page.saturating_mul(PAGE_BYTES) },
        None => Position::File { file },
    }
}
