//! Records that were committed after the last signature: their seal stands for it, and nothing else does.

use std::fs;
use std::path::Path;

use palyra_journal::rusqlite::Connection;
use palyra_journal::{Position, open_read_only};

use crate::support::{check, code, copy_dir, note, open};

fn database(root: &Path) -> Connection {
    Connection::open(root.join("journal/journal.db")).unwrap()
}

/// A state as a crash leaves it: 20 records, the anchor as it was after 12, and no signed head in the database at all since it began.
fn crashed() -> tempfile::TempDir {
    let live = tempfile::tempdir().unwrap();
    let journal = open(live.path());
    for n in 1..=12 {
        journal.append_blocking(vec![note(n)]).unwrap();
    }
    // The anchor is written after the answer; asking for anything else waits for it.
    let anchored = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(journal.prove(12));
    anchored.unwrap();
    let anchor = fs::read(live.path().join("journal/anchor")).unwrap();
    journal.append_blocking((13..=20).map(note).collect()).unwrap();
    let dead = tempfile::tempdir().unwrap();
    copy_dir(live.path(), dead.path());
    for copy in ["journal/anchor", "journal.anchor"] {
        fs::write(dead.path().join(copy), &anchor).unwrap();
    }
    journal.close_blocking().unwrap();
    dead
}

#[test]
fn what_a_crash_left_unsigned_is_sound_and_is_signed_at_the_next_start() {
    let dir = crashed();
    let report = check(dir.path());
    assert!(report.is_sound() && report.records == 20, "{report:?}");
    let reader = open_read_only(dir.path()).unwrap();
    reader.prove(12).unwrap().verify().unwrap();
    assert_eq!(code(&reader.prove(13).unwrap_err()), "record_unsigned");
    assert_eq!(code(&reader.prove(21).unwrap_err()), "record_not_found");
    drop(reader);
    let journal = open(dir.path());
    assert_eq!(journal.head().count, 20);
    open_read_only(dir.path()).unwrap().prove(20).unwrap().verify().unwrap();
    journal.close_blocking().unwrap();
}

#[test]
fn without_the_right_seal_they_are_refused() {
    // (what was done, the first record that is in doubt)
    let changes = [
        ("UPDATE records SET seal = NULL WHERE seq = 20", 13),
        ("UPDATE records SET seal = zeroblob(32) WHERE seq = 20", 13),
        ("UPDATE records SET seal = (SELECT seal FROM records WHERE seq = 12) WHERE seq = 20", 13),
        // In the middle of a batch there is no seal, so a batch cannot lose its end.
        ("DELETE FROM records WHERE seq > 16", 13),
    ];
    for (change, first) in changes {
        let dir = crashed();
        let connection = database(dir.path());
        connection.execute(change, []).unwrap();
        let last: i64 = connection.query_row("SELECT max(seq) FROM records", [], |row| row.get(0)).unwrap();
        drop(connection);
        let report = check(dir.path());
        let expected = Position::Records { first, last: last.unsigned_abs() };
        let named = report.problems.iter().any(|p| p.code == "records_unsigned" && p.position == expected);
        assert!(named, "{change}: {report:?}");
        let refused = palyra_journal::Journal::open(crate::support::options(dir.path())).unwrap_err();
        assert_eq!(code(&refused), "journal_damaged", "{change}");
    }
}

#[test]
fn only_the_holder_of_the_key_can_vouch_for_a_seal() {
    let dir = crashed();
    fs::remove_file(dir.path().join("keys/journal.key")).unwrap();
    let report = check(dir.path());
    assert_eq!(report.problems.first().map(|p| p.code.as_str()), Some("records_unsigned"), "{report:?}");
}
