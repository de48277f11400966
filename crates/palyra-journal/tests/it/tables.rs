//! Derived tables that somebody changed are built again from the log before anything is appended on top of them.

use std::path::Path;
use std::sync::Arc;

use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, NewRecord};

use crate::support::{Kinds, check, fill, note, on_tape, open, options};

fn database(root: &Path) -> Connection {
    Connection::open(root.join("journal/journal.db")).unwrap()
}

fn count_of_notes(journal: &Journal) -> i64 {
    journal
        .read_blocking(|reader| {
            Ok(reader.connection().query_row("SELECT n FROM kinds WHERE kind = 'note'", [], |row| row.get(0))?)
        })
        .unwrap()
}

#[test]
fn a_changed_derived_table_is_built_again_at_start() {
    let changes = [
        "DELETE FROM kinds",
        "DELETE FROM kinds WHERE kind = 'step'",
        "UPDATE kinds SET n = n + 1 WHERE kind = 'note'",
        "INSERT INTO kinds VALUES ('other', 1)",
        "DROP TABLE kinds",
        "DELETE FROM run_heads",
        "UPDATE run_heads SET first_seq = 3",
        "UPDATE table_digests SET digest = zeroblob(32) WHERE name = 'kinds'",
        "DELETE FROM table_digests WHERE name = 'kinds'",
        "DELETE FROM table_digests",
    ];
    for change in changes {
        for crashed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let journal = open(dir.path());
            fill(&journal, 40);
            journal.append_blocking(vec![on_tape(1, 1)]).unwrap();
            journal.close_blocking().unwrap();
            if crashed {
                std::fs::remove_file(dir.path().join("journal/closed")).unwrap();
            }
            database(dir.path()).execute_batch(change).unwrap();
            let journal = open(dir.path());
            assert_eq!(count_of_notes(&journal), 40, "{change}");
            // Nothing is appended on top of a wrong table: the run goes on at its place.
            journal.append_blocking(vec![on_tape(1, 2), note(1)]).unwrap();
            assert_eq!(count_of_notes(&journal), 41, "{change}");
            journal.close_blocking().unwrap();
            let report = check(dir.path());
            let noticed = change.contains("table_digests");
            assert_eq!(report.is_sound(), !noticed, "{change}: {report:?}");
        }
    }
}

#[test]
fn after_an_orderly_stop_no_table_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    fill(&journal, 40);
    journal.close_blocking().unwrap();
    let note = dir.path().join("journal/closed");
    let closed = std::fs::read(&note).unwrap();
    // The note holds for the file as it was closed, and for one start.
    open(dir.path()).close_blocking().unwrap();
    assert!(std::fs::read(&note).is_ok_and(|again| !again.is_empty()));
    database(dir.path()).execute_batch("UPDATE kinds SET n = n").unwrap();
    std::fs::write(&note, closed).unwrap();
    let journal = open(dir.path());
    assert!(!note.exists());
    assert_eq!(count_of_notes(&journal), 40);
}

#[test]
fn a_record_that_a_projection_refuses_is_quarantined_and_stalls_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut none = options(dir.path());
    none.projections.clear();
    let journal = Journal::open(none).unwrap();
    fill(&journal, 10);
    journal.append_blocking(vec![NewRecord::new("refuse", palyra_common::Timestamp(1), b"{}".to_vec())]).unwrap();
    fill(&journal, 10);
    journal.close_blocking().unwrap();
    let journal = Journal::open(options(dir.path())).unwrap();
    assert_eq!(count_of_notes(&journal), 20);
    assert!(journal.warnings().iter().any(|finding| finding.code == "records_quarantined"));
    journal.append_blocking(vec![note(3)]).unwrap();
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound() && report.quarantined == 1, "{report:?}");
    // Another version may take it.
    let again = options(dir.path()).with_projection(Arc::new(Kinds { version: 2 }));
    let again = palyra_journal::JournalOptions { projections: again.projections[1..].to_vec(), ..again };
    assert!(!Journal::open(again).unwrap().warnings().is_empty());
}
