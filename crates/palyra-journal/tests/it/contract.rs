//! The contract of the journal: what is appended is there, in order, once, and nothing else is.

use std::sync::Arc;

use palyra_common::{RunId, Timestamp};
use palyra_journal::{Journal, NewRecord, open_read_only};

use crate::support::{Kinds, check, code, fill, note, on_tape, open, options};

#[test]
fn a_page_is_bounded_in_records_and_in_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let sized =
        |bytes: usize| NewRecord::new("note", Timestamp(1), format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes());
    // The large ones are kept outside the database.
    journal.append_blocking(vec![sized(100), sized(100), sized(1 << 20), sized(100), sized(2 << 20)]).unwrap();
    let page = |from: u64, limit: usize, bytes: usize| {
        let records = journal.read_blocking(move |r| r.page(from, limit, bytes)).unwrap();
        records.iter().map(|record| (record.seq, record.payload.len())).collect::<Vec<_>>()
    };
    assert_eq!(page(1, 10, 200), [(1, 100), (2, 100)]);
    assert_eq!(page(1, 10, 199), [(1, 100)]);
    assert_eq!(page(1, 1, 1 << 30), [(1, 100)]);
    assert_eq!(page(3, 10, 200), [(3, 1 << 20)], "one that is too large goes alone");
    assert_eq!(page(4, 10, 200), [(4, 100)]);
    assert_eq!(page(5, 10, 0), [(5, 2 << 20)]);
    assert_eq!(page(6, 10, 200), []);
    assert_eq!(page(1, 0, 200), []);
}

#[tokio::test]
async fn records_are_numbered_linked_and_readable() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    assert_eq!(journal.head().count, 0);
    let genesis = journal.head().hash;
    let first = journal.append(vec![note(1), note(2)]).await.unwrap();
    assert_eq!((first.first_seq, first.last_seq), (1, 2));
    assert_eq!(journal.head(), first.head);
    let second = journal.append(vec![note(3)]).await.unwrap();
    assert_eq!((second.first_seq, second.last_seq), (3, 3));

    let records = journal.read(|reader| reader.range(1, 10)).await.unwrap();
    assert_eq!(records.len(), 3);
    assert_eq!(records[0].prev_hash, genesis);
    for pair in records.windows(2) {
        assert_eq!(pair[1].prev_hash, pair[0].hash);
        assert_eq!(pair[1].seq, pair[0].seq + 1);
    }
    for record in &records {
        assert_eq!(record.computed_hash(), record.hash);
    }
    assert_eq!(records[2].payload, br#"{"n":3}"#);
    assert_eq!(journal.head().hash, records[2].hash);
    let tail = journal.read(|reader| reader.tail(2)).await.unwrap();
    assert_eq!(tail, records[1..]);
    let missing = journal.read(|reader| reader.record(4)).await.unwrap_err();
    assert_eq!(code(&missing), "record_not_found");
    journal.close().await.unwrap();

    let again = open(dir.path());
    assert_eq!(again.head(), second.head);
    assert_eq!(again.read(|reader| reader.range(1, 10)).await.unwrap(), records);
}

#[test]
fn a_tape_is_gapless_and_read_by_run() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    for step in 1..=5 {
        journal.append_blocking(vec![on_tape(1, step), note(step), on_tape(2, step)]).unwrap();
    }
    let tape = journal.read_blocking(|r| r.run_tape(RunId::from_u128(2), 3, 2)).unwrap();
    assert_eq!(tape.iter().map(|r| r.run_seq).collect::<Vec<_>>(), [Some(3), Some(4)]);
    for wrong in [5, 7, 1] {
        let error = journal.append_blocking(vec![on_tape(1, wrong)]).unwrap_err();
        assert_eq!(code(&error), "run_sequence_conflict", "{wrong}");
    }
    journal.append_blocking(vec![on_tape(1, 6), on_tape(1, 7)]).unwrap();
    assert_eq!(journal.read_blocking(|r| r.last_run_seq(RunId::from_u128(1))).unwrap(), 7);
    assert_eq!(journal.read_blocking(|r| r.run_tape(RunId::from_u128(3), 1, 9)).unwrap(), []);
}

#[test]
fn a_batch_is_refused_whole_and_alone() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    journal.append_blocking(vec![note(1)]).unwrap();
    let refuse = || NewRecord::new("refuse", Timestamp(0), b"0".to_vec());
    // Sent without waiting, so that good and bad batches share groups.
    let pending: Vec<_> = (0..50)
        .map(|i| {
            let batch = if i % 5 == 0 { vec![note(i), on_tape(9, 99)] } else { vec![note(i), note(i)] };
            let batch = if i % 7 == 3 { vec![note(i), refuse()] } else { batch };
            (i, journal.append_nowait(batch))
        })
        .collect();
    let mut good = 0;
    for (i, append) in pending {
        match append.wait() {
            Ok(_) => good += 1,
            Err(error) => {
                let expected = if i % 7 == 3 { "projection_refused" } else { "run_sequence_conflict" };
                assert_eq!(code(&error), expected, "batch {i}");
            }
        }
    }
    let bad = (0..50).filter(|i| i % 5 == 0 || i % 7 == 3).count() as u64;
    assert_eq!(good, 50 - bad);
    assert_eq!(journal.head().count, 1 + 2 * good);
    let notes: u32 = journal
        .read_blocking(|r| {
            Ok(r.connection().query_row("SELECT n FROM kinds WHERE kind = 'note'", [], |row| row.get(0))?)
        })
        .unwrap();
    assert_eq!(journal.head().count, u64::from(notes));
    journal.close_blocking().unwrap();
    assert!(check(dir.path()).is_sound());
}

#[test]
fn what_is_not_a_record_is_refused_before_it_waits() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let bad = NewRecord::new("x", Timestamp(0), b"not json".to_vec());
    assert_eq!(code(&journal.append_blocking(vec![note(1), bad]).unwrap_err()), "invalid_record");
    assert_eq!(code(&journal.append_blocking(vec![]).unwrap_err()), "invalid_record");
    assert_eq!(journal.head().count, 0);
}

#[test]
fn large_payloads_become_artifacts_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = options(dir.path());
    small.inline_payload_bytes = 100;
    let journal = Journal::open(small).unwrap();
    let text = format!("\"{}\"", "x".repeat(5_000));
    for _ in 0..2 {
        journal.append_blocking(vec![NewRecord::new("big", Timestamp(1), text.clone().into_bytes())]).unwrap();
    }
    let record = journal.read_blocking(|r| r.record(2)).unwrap();
    assert_eq!(record.payload, text.as_bytes());
    let digest = palyra_common::Digest::of(text.as_bytes());
    assert_eq!(journal.artifacts().len(&digest).unwrap(), 5_002);
    assert_eq!(journal.artifacts().get_range(&digest, 4_999, 50).unwrap(), b"xx\"");
    assert_eq!(journal.artifacts().get_range(&digest, 9_999, 50).unwrap(), b"");
    let path = journal.artifacts().path(&digest);
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.artifacts, 1, "the same bytes are stored once");

    std::fs::write(&path, text.replacen('x', "y", 1)).unwrap();
    let reader = open_read_only(dir.path()).unwrap();
    assert_eq!(code(&reader.record(1).unwrap_err()), "artifact_changed");
    assert_eq!(code(&reader.artifacts().get_range(&digest, 0, 1).unwrap_err()), "artifact_changed");
    let unknown = palyra_common::Digest::of(b"never stored");
    assert_eq!(code(&reader.artifacts().get(&unknown).unwrap_err()), "artifact_not_found");
}

#[test]
fn a_changed_projection_is_built_again_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let count = |journal: &Journal| -> i64 {
        journal
            .read_blocking(|r| {
                Ok(r.connection().query_row("SELECT n FROM kinds WHERE kind = 'note'", [], |row| row.get(0))?)
            })
            .unwrap()
    };
    let journal = open(dir.path());
    fill(&journal, 30);
    assert_eq!(count(&journal), 30);
    journal.close_blocking().unwrap();
    let mut changed = options(dir.path());
    changed.projections = vec![Arc::new(Kinds { version: 2 })];
    let journal = Journal::open(changed).unwrap();
    assert_eq!(count(&journal), 60);
    journal.close_blocking().unwrap();
    let mut none = options(dir.path());
    none.projections.clear();
    let journal = Journal::open(none).unwrap();
    fill(&journal, 5);
    journal.close_blocking().unwrap();
    let journal = open(dir.path());
    assert_eq!(count(&journal), 35, "records appended without the projection are not missed");
}

#[test]
fn a_second_writer_is_refused_and_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let error = Journal::open(options(dir.path())).unwrap_err();
    assert_eq!(code(&error), "state_in_use");
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(journal);
    open(dir.path());
}

#[tokio::test]
async fn after_closing_nothing_is_accepted_and_everything_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let clone = journal.clone();
    let pending: Vec<_> = (0..200).map(|i| journal.append_nowait(vec![note(i)])).collect();
    journal.close().await.unwrap();
    for append in pending {
        append.await.unwrap();
    }
    let late = clone.append(vec![note(0)]).await.unwrap_err();
    assert_eq!(code(&late), "journal_closed");
    drop(clone);
    let wal = dir.path().join("journal/journal.db-wal");
    assert!(!wal.exists() || wal.metadata().unwrap().len() == 0);
    assert_eq!(open(dir.path()).head().count, 200);
}

#[test]
fn a_read_sees_one_state_while_others_write() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    fill(&journal, 10);
    let writer = journal.clone();
    let (before, after) = journal
        .read_blocking(move |reader| {
            let before = reader.range(1, 1000)?.len();
            writer.append_blocking(vec![note(1)])?;
            Ok((before, reader.range(1, 1000)?.len()))
        })
        .unwrap();
    assert_eq!((before, after), (10, 10));
    assert_eq!(journal.read_blocking(|r| Ok(r.range(1, 1000)?.len())).unwrap(), 11);
}

#[test]
fn a_panic_in_a_read_harms_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    for _ in 0..5 {
        let result = journal.read_blocking::<()>(|_| panic!("the caller's defect"));
        assert!(result.is_err());
    }
    fill(&journal, 3);
    assert_eq!(journal.read_blocking(|r| Ok(r.tail(9)?.len())).unwrap(), 3);
}

#[test]
fn artifacts_arrive_in_pieces_and_unfinished_ones_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut incoming = journal.artifacts().receive().unwrap();
    for piece in ["in ", "three ", "pieces"] {
        incoming.write(piece.as_bytes()).unwrap();
    }
    let (digest, size) = incoming.finish().unwrap();
    assert_eq!((digest, size), (palyra_common::Digest::of(b"in three pieces"), 15));
    assert_eq!(journal.artifacts().get(&digest).unwrap(), b"in three pieces");
    let waiting = || std::fs::read_dir(dir.path().join("artifacts/incoming")).unwrap().count();
    let mut given_up = journal.artifacts().receive().unwrap();
    given_up.write(b"never whole").unwrap();
    assert_eq!(waiting(), 1);
    drop(given_up);
    assert_eq!(waiting(), 0);
    // As a process that is killed leaves it.
    let mut forgotten = journal.artifacts().receive().unwrap();
    forgotten.write(b"never whole").unwrap();
    std::mem::forget(forgotten);
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound() && report.artifacts == 1, "{report:?}");
    open(dir.path()).close_blocking().unwrap();
    assert_eq!(waiting(), 0);
}
