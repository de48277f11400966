//! The records of a state as plain SQL and plain files show them: an opinion that owes nothing to the code under test.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use palyra_journal::rusqlite::{Connection, OpenFlags, types::Value};

/// One record, column by column, with its payload in full.
pub(super) type Record = Vec<Value>;

const COLUMNS: &str = "seq, at, kind, session_id, run_id, run_seq, payload, artifact, prev_hash, hash";
const PAYLOAD: usize = 6;
const ARTIFACT: usize = 7;

/// All records in order: those of the sealed segments, then those of the live table.
pub(super) fn records(root: &Path) -> Result<Vec<Record>> {
    let journal = root.join("journal");
    let live = open(&journal.join("journal.db"))?;
    let integrity: String = live.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let mut records = Vec::new();
    let mut segments = live.prepare("SELECT file FROM segments ORDER BY first_seq")?;
    let files: Vec<String> = segments.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for file in files {
        read(&open(&journal.join("segments").join(file))?, &mut records)?;
    }
    read(&live, &mut records)?;
    ensure!(integrity == "ok", "SQLite says: {integrity}");
    for record in &mut records {
        restore_payload(root, record)?;
    }
    Ok(records)
}

/// Immutable: looking must not leave files behind.
fn open(path: &Path) -> Result<Connection> {
    let uri = format!("file:{}?immutable=1", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Ok(Connection::open_with_flags(uri, flags)?)
}

fn read(database: &Connection, records: &mut Vec<Record>) -> Result<()> {
    let mut statement = database.prepare(&format!("SELECT {COLUMNS} FROM records ORDER BY seq"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        records.push((0..10).map(|column| row.get(column)).collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Puts the bytes of an artifact in the place of the payload.
fn restore_payload(root: &Path, record: &mut Record) -> Result<()> {
    if let Value::Blob(digest) = &record[ARTIFACT] {
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = root.join("artifacts").join(hex.get(..2).context("a digest has two bytes")?).join(&hex);
        record[PAYLOAD] = Value::Blob(std::fs::read(&path).with_context(|| path.display().to_string())?);
    }
    Ok(())
}
