//! Artifacts that nothing but a derived table names, such as a file before it was changed: verification says when one is gone.

use std::fs;
use std::sync::Arc;

use palyra_common::Timestamp;
use palyra_journal::rusqlite::{self, Connection};
use palyra_journal::{
    Journal, KEPT_ARTIFACT, NewRecord, Projection, ProjectionError, StoredRecord, VerifyOptions, verify,
};

use crate::support::{codes, options};

/// Keeps what records of the kind `kept` name.
pub(crate) struct Kept;

impl Projection for Kept {
    fn name(&self) -> &'static str {
        "kept"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["kept"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(&format!(
            "CREATE TABLE kept ({KEPT_ARTIFACT} TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID"
        ))
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        if record.kind == "kept" {
            let digest: String = serde_json::from_slice(&record.payload).unwrap();
            connection.execute("INSERT OR IGNORE INTO kept VALUES (?1)", [digest])?;
        }
        Ok(())
    }
}

#[test]
fn an_artifact_that_only_a_table_names_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(options(dir.path()).with_projection(Arc::new(Kept))).unwrap();
    let digests = [&b"one"[..], b"two"].map(|bytes| journal.artifacts().put(bytes).unwrap());
    for digest in digests {
        let payload = serde_json::to_vec(&digest.to_string()).unwrap();
        journal.append_blocking(vec![NewRecord::new("kept", Timestamp(1), payload)]).unwrap();
    }
    let path = journal.artifacts().path(&digests[1]);
    journal.close_blocking().unwrap();
    // With and without the definition of the table.
    for projections in [Vec::new(), vec![Arc::new(Kept) as Arc<dyn Projection>]] {
        let options = VerifyOptions { projections, ..VerifyOptions::default() };
        assert!(verify(dir.path(), options).unwrap().is_sound());
    }
    fs::remove_file(&path).unwrap();
    for projections in [Vec::new(), vec![Arc::new(Kept) as Arc<dyn Projection>]] {
        let options = VerifyOptions { projections, ..VerifyOptions::default() };
        let report = verify(dir.path(), options).unwrap();
        assert_eq!(codes(&report), ["artifact_missing"], "{report:?}");
        assert!(report.problems[0].position.to_string().contains(&digests[1].to_hex()), "{report:?}");
    }
}
