//! What the tests share: options with small limits, records, a simple projection, copies of a state.

use std::path::Path;
use std::sync::Arc;

use palyra_common::{RunId, SessionId, Timestamp, ToStableError as _};
use palyra_journal::rusqlite::{self, Connection, params};
use palyra_journal::{
    Journal, JournalError, JournalOptions, NewRecord, Projection, ProjectionError, StoredRecord, VerifyOptions,
    VerifyReport, verify,
};

/// Counts records by kind; refuses the kind `refuse`.
#[derive(Debug)]
pub(crate) struct Kinds {
    pub(crate) version: u32,
}

impl Projection for Kinds {
    fn name(&self) -> &'static str {
        "kinds"
    }
    fn version(&self) -> u32 {
        self.version
    }
    fn tables(&self) -> &'static [&'static str] {
        &["kinds"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch("CREATE TABLE kinds (kind TEXT PRIMARY KEY NOT NULL, n INTEGER NOT NULL) STRICT")
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        if record.kind == "refuse" {
            return Err(ProjectionError::Refused("it must not be".to_owned()));
        }
        let step = i64::from(self.version);
        connection
            .prepare_cached("INSERT INTO kinds (kind, n) VALUES (?1, ?2) ON CONFLICT (kind) DO UPDATE SET n = n + ?2")?
            .execute(params![record.kind, step])?;
        Ok(())
    }
}

pub(crate) fn options(root: &Path) -> JournalOptions {
    let mut options = JournalOptions::at(root).with_projection(Arc::new(Kinds { version: 1 }));
    options.min_free_bytes = 0;
    options.readers = 2;
    options
}

pub(crate) fn open(root: &Path) -> Journal {
    Journal::open(options(root)).unwrap()
}

pub(crate) fn note(n: u64) -> NewRecord {
    NewRecord::new("note", Timestamp(1_000 + n as i64), format!("{{\"n\":{n}}}").into_bytes())
}

pub(crate) fn on_tape(run: u128, run_seq: u64) -> NewRecord {
    NewRecord::new("step", Timestamp(5), format!("{{\"run\":\"{run}\",\"step\":{run_seq}}}").into_bytes())
        .in_session(SessionId::from_u128(run + 1_000_000))
        .on_tape(RunId::from_u128(run), run_seq)
}

/// Appends `n` records in batches.
pub(crate) fn fill(journal: &Journal, n: u64) {
    let mut pending = Vec::new();
    let mut left = n;
    while left > 0 {
        let batch = left.min(100);
        pending.push(journal.append_nowait((0..batch).map(|i| note(left - i)).collect()));
        left -= batch;
    }
    for append in pending {
        append.wait().unwrap();
    }
}

pub(crate) fn check(root: &Path) -> VerifyReport {
    check_with(root, None)
}

pub(crate) fn check_with(root: &Path, anchor: Option<&Path>) -> VerifyReport {
    let options = VerifyOptions {
        anchor: anchor.map(Path::to_owned),
        projections: vec![Arc::new(Kinds { version: 1 })],
        ..VerifyOptions::default()
    };
    verify(root, options).unwrap()
}

pub(crate) fn code(error: &JournalError) -> String {
    error.to_stable().code
}

/// Codes of a report's problems.
pub(crate) fn codes(report: &VerifyReport) -> Vec<&str> {
    report.problems.iter().map(|problem| problem.code.as_str()).collect()
}

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
