//! Databases as older releases left them are brought up to date; newer ones are refused and left alone.

use std::path::Path;

use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, open_read_only};

use crate::support::{check, code, fill, open, options};

fn database(root: &Path) -> Connection {
    Connection::open(root.join("journal/journal.db")).unwrap()
}

fn version(root: &Path) -> i64 {
    database(root).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn version_one_gains_segments_and_keeps_its_records() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    fill(&journal, 40);
    let head = journal.head();
    journal.close_blocking().unwrap();
    // Version 1 is the same database without what the later migrations add.
    database(dir.path())
        .execute_batch(
            "DROP TABLE segments; DROP TABLE table_digests; DROP TABLE quarantined;
             ALTER TABLE records DROP COLUMN seal; PRAGMA user_version = 1",
        )
        .unwrap();
    std::fs::remove_file(dir.path().join("journal.anchor")).unwrap();
    let report = check(dir.path());
    assert!(report.is_sound(), "an old state verifies as it is: {report:?}");
    assert_eq!(code(&open_read_only(dir.path()).unwrap_err()), "journal_schema_older");
    let journal = open(dir.path());
    assert_eq!(journal.head(), head);
    fill(&journal, 10);
    journal.close_blocking().unwrap();
    assert_eq!(version(dir.path()), 4);
    let report = check(dir.path());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.records, 50);
}

#[test]
fn a_file_that_was_only_created_becomes_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("journal")).unwrap();
    // Version 0: the process died right after creating the file.
    std::fs::write(dir.path().join("journal/journal.db"), "").unwrap();
    let journal = open(dir.path());
    fill(&journal, 2);
    journal.close_blocking().unwrap();
    assert_eq!(version(dir.path()), 4);
    assert!(check(dir.path()).is_sound());
}

#[test]
fn a_schema_from_the_future_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    fill(&journal, 4);
    journal.close_blocking().unwrap();
    database(dir.path()).execute_batch("PRAGMA user_version = 99").unwrap();
    let error = Journal::open(options(dir.path())).unwrap_err();
    assert_eq!(code(&error), "journal_schema_newer");
    assert_eq!(code(&open_read_only(dir.path()).unwrap_err()), "journal_schema_newer");
    assert_eq!(version(dir.path()), 99);
    database(dir.path()).execute_batch("PRAGMA user_version = 4").unwrap();
    assert_eq!(open(dir.path()).head().count, 4);
}
