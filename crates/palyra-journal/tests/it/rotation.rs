//! Segments: the log outgrows the live table without anybody noticing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use palyra_common::RunId;
use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, JournalOptions};

use crate::support::{check, code, codes, fill, note, on_tape, open, options};

fn rotating(root: &Path) -> JournalOptions {
    let mut options = options(root);
    options.segment_records = 1024;
    options
}

fn number(journal: &Journal, sql: &'static str) -> i64 {
    journal.read_blocking(move |r| Ok(r.connection().query_row(sql, [], |row| row.get(0))?)).unwrap()
}

/// Rotation runs beside the writer; waits until it has moved so much.
fn wait_for(journal: &Journal, what: &'static str, wanted: impl Fn(i64) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !wanted(number(journal, what)) {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// 64 runs whose tapes are spread over the whole log.
fn fill_with_runs(journal: &Journal, steps: u64) {
    let mut pending = Vec::new();
    for step in 1..=steps {
        let batch = (1..=64).map(|run| on_tape(run, step)).collect();
        pending.push(journal.append_nowait(batch));
    }
    for append in pending {
        append.wait().unwrap();
    }
}

#[test]
fn sealed_and_live_records_are_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(rotating(dir.path())).unwrap();
    fill_with_runs(&journal, 80);
    wait_for(&journal, "SELECT count(*) FROM segments", |n| n >= 4);
    wait_for(&journal, "SELECT count(*) FROM records", |n| n <= 1024);
    let all = journal.read_blocking(|r| r.range(1, usize::MAX)).unwrap();
    assert_eq!(all.len(), 64 * 80);
    assert!(all.iter().zip(1..).all(|(record, seq)| record.seq == seq));
    assert!(all.windows(2).all(|pair| pair[1].prev_hash == pair[0].hash));
    let tape = journal.read_blocking(|r| r.run_tape(RunId::from_u128(9), 1, usize::MAX)).unwrap();
    assert_eq!(tape.iter().map(|r| r.run_seq.unwrap()).collect::<Vec<_>>(), (1..=80).collect::<Vec<_>>());
    let part = journal.read_blocking(|r| r.run_tape(RunId::from_u128(9), 30, 20)).unwrap();
    assert_eq!(part, tape[29..49]);
    let across = journal.read_blocking(|r| r.range(1020, 10)).unwrap();
    assert_eq!(across, all[1019..1029]);
    let across = journal.read_blocking(|r| r.page(1020, 10, usize::MAX)).unwrap();
    assert_eq!(across, all[1019..1029]);
    // The index of the live table no longer knows these numbers; they are refused all the same.
    for step in [1, 5, 80, 82] {
        assert_eq!(code(&journal.append_blocking(vec![on_tape(9, step)]).unwrap_err()), "run_sequence_conflict");
    }
    journal.append_blocking(vec![on_tape(9, 81)]).unwrap();
    journal.read_blocking(|r| r.prove(7)).unwrap().verify().unwrap();
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound(), "{report:?}");
    assert!(report.segments >= 4 && report.records == 64 * 80 + 1, "{report:?}");
    let journal = Journal::open(rotating(dir.path())).unwrap();
    assert_eq!(journal.read_blocking(|r| r.run_tape(RunId::from_u128(9), 1, usize::MAX)).unwrap().len(), 81);
}

#[test]
fn projections_are_rebuilt_from_segments_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut none = rotating(dir.path());
    none.projections.clear();
    let journal = Journal::open(none).unwrap();
    fill(&journal, 4_000);
    wait_for(&journal, "SELECT count(*) FROM segments", |n| n >= 2);
    journal.close_blocking().unwrap();
    let journal = open(dir.path());
    assert_eq!(number(&journal, "SELECT n FROM kinds"), 4_000);
}

#[test]
fn a_crash_between_the_steps_of_a_rotation_is_made_good() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(rotating(dir.path())).unwrap();
    fill(&journal, 2_500);
    wait_for(&journal, "SELECT count(*) FROM segments", |n| n >= 1);
    wait_for(&journal, "SELECT min(seq) FROM records", |n| n > 1024);
    journal.close_blocking().unwrap();
    let segments = dir.path().join("journal/segments");
    let first = segments.join("000000000001-000000001024.db");
    assert!(first.exists());

    // Died while building, and died between renaming and registering.
    fs::write(segments.join("000000009217-000000010240.db.tmp"), "half").unwrap();
    fs::copy(&first, segments.join("000000009217-000000010240.db")).unwrap();
    // Died between registering and trimming: sealed rows are still in the live table.
    let database = Connection::open(dir.path().join("journal/journal.db")).unwrap();
    database.execute("ATTACH ?1 AS segment", [first.to_str().unwrap()]).unwrap();
    database.execute("INSERT INTO records SELECT * FROM segment.records WHERE seq > 500", []).unwrap();
    drop(database);
    // The rows were put there by hand, which the digest of the table shows and nothing else.
    assert_eq!(codes(&check(dir.path())), ["table_changed"]);
    let journal = Journal::open(rotating(dir.path())).unwrap();
    assert_eq!(journal.head().count, 2_500);
    let all = journal.read_blocking(|r| r.range(1, usize::MAX)).unwrap();
    assert!(all.len() == 2_500 && all.iter().zip(1..).all(|(record, seq)| record.seq == seq));
    journal.append_blocking(vec![note(1)]).unwrap();
    wait_for(&journal, "SELECT min(seq) FROM records", |n| n > 1024);
    journal.close_blocking().unwrap();
    let names: Vec<_> =
        fs::read_dir(&segments).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.contains("9217")), "{names:?}");
    assert_eq!(codes(&check(dir.path())), ["table_changed"]);
}
