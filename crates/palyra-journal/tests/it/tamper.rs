//! Tampering by every kind we could think of, judged by an oracle.
//!
//! The oracle reads all records through the ordinary reader before and after. If they differ in any way or can no longer be
//! read, verification must report it and name a position; an untouched copy must pass.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use palyra_common::{Digest, Timestamp};
use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, NewRecord, Position, StoredRecord, VerifyReport, open_read_only};

use crate::support::{check, check_with, codes, copy_dir, note, on_tape, options};

const RECORDS: u64 = 1_400;

/// A closed journal with a segment, runs, artifacts, checkpoints; built once, copied for each trial.
fn original() -> &'static Path {
    static STATE: OnceLock<tempfile::TempDir> = OnceLock::new();
    STATE
        .get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            let mut small = options(dir.path());
            small.segment_records = 1024;
            small.checkpoint_every = 100;
            small.inline_payload_bytes = 2_000;
            let journal = Journal::open(small).unwrap();
            for step in 1..=RECORDS / 10 {
                let mut batch: Vec<_> = (1..=8).map(|run| on_tape(run, step)).collect();
                batch.push(note(step));
                let size = if step % 40 == 0 { 3_000 } else { 30 };
                let text = format!("\"{step} {}\"", "z".repeat(size));
                batch.push(NewRecord::new("text", Timestamp(step as i64), text.into_bytes()));
                journal.append_blocking(batch).unwrap();
            }
            let sealed = || {
                journal.read_blocking(|r| {
                    Ok(r.connection().query_row("SELECT min(seq) FROM records", [], |row| row.get::<_, i64>(0))?)
                })
            };
            while sealed().unwrap() <= 1024 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            journal.close_blocking().unwrap();
            dir
        })
        .path()
}

fn logical(root: &Path) -> Option<Vec<StoredRecord>> {
    let mut records = Vec::new();
    let reader = open_read_only(root).ok()?;
    reader
        .for_each(1, &mut |record| {
            records.push(record);
            Ok(())
        })
        .ok()?;
    Some(records)
}

/// Applies a change to a copy; returns whether records changed and what verification says.
fn trial(change: impl FnOnce(&Path)) -> (bool, VerifyReport) {
    let copy = tempfile::tempdir().unwrap();
    copy_dir(original(), copy.path());
    change(copy.path());
    let changed = logical(copy.path()) != logical(original());
    (changed, check(copy.path()))
}

fn assert_named(what: &str, change: impl FnOnce(&Path)) -> VerifyReport {
    let (_, report) = trial(change);
    assert!(!report.is_sound(), "{what} was not noticed");
    report
}

fn database(root: &Path) -> PathBuf {
    root.join("journal/journal.db")
}

fn segment(root: &Path) -> PathBuf {
    root.join("journal/segments/000000000001-000000001024.db")
}

fn sql(root: &Path, sql: &str) {
    Connection::open(database(root)).unwrap().execute_batch(sql).unwrap();
}

/// A small generator, so that a failing trial can be repeated by its number.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % n
    }
}

#[test]
fn an_untouched_copy_passes() {
    let (changed, report) = trial(|_| {});
    assert!(!changed && report.is_sound(), "{report:?}");
    assert_eq!((report.records, report.segments), (RECORDS, 1));
    assert!(report.checkpoints >= 14 && report.artifacts == 3, "{report:?}");
    assert_eq!(report.projections, ["run_heads", "restores", "kinds"]);
}

#[test]
fn random_bytes_in_any_file_never_change_a_record_unnoticed() {
    let (mut changed_trials, mut noticed) = (0, 0);
    // More trials are a matter of time only: PALYRA_TAMPER_TRIALS=5000.
    let trials = std::env::var("PALYRA_TAMPER_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(160_u64);
    for number in 1..=trials {
        let mut random = Random(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (changed, report) = trial(|root| {
            let path = if number % 4 == 0 { segment(root) } else { database(root) };
            let file = fs::OpenOptions::new().write(true).read(true).open(&path).unwrap();
            let at = random.below(file.metadata().unwrap().len());
            let length = [1, 1, 1, 8, 64][random.below(5) as usize];
            let mut bytes = vec![0; length];
            let read = file.read_at(&mut bytes, at).unwrap();
            for byte in &mut bytes[..read] {
                *byte ^= 1 << random.below(8);
            }
            file.write_all_at(&bytes[..read], at).unwrap();
        });
        noticed += u32::from(!report.is_sound());
        if changed {
            changed_trials += 1;
            assert!(!report.is_sound(), "trial {number} changed records and was not noticed");
        }
    }
    println!("{trials} trials, {changed_trials} changed records, {noticed} noticed");
    assert!(changed_trials >= trials / 4, "the trials do hit records: {changed_trials} of them, {noticed} noticed");
}

#[test]
fn a_cut_file_is_noticed() {
    for number in 1..=30_u64 {
        let mut random = Random(number * 7919);
        let (changed, report) = trial(|root| {
            let path = if number % 3 == 0 { segment(root) } else { database(root) };
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(random.below(file.metadata().unwrap().len())).unwrap();
        });
        assert!(!changed || !report.is_sound(), "trial {number}");
    }
}

#[test]
fn rows_changed_deleted_swapped_or_added_are_named() {
    for number in 1..=40_u64 {
        let mut random = Random(number * 104_729);
        let seq = 1_025 + random.below(RECORDS - 1_025);
        let other = 1_025 + (seq - 1_025 + 1 + random.below(RECORDS - 1_026)) % (RECORDS - 1_025);
        let columns = "at = at + 1|kind = 'forged'|payload = x'7b7d', artifact = NULL|session_id = zeroblob(16)|\
                       run_seq = 777777|hash = zeroblob(32)|prev_hash = zeroblob(32)";
        let columns: Vec<_> = columns.split('|').collect();
        let column = columns[random.below(columns.len() as u64) as usize];
        let statement = match number % 3 {
            0 => format!("UPDATE records SET {column} WHERE seq = {seq}"),
            1 => format!("DELETE FROM records WHERE seq = {seq}"),
            _ => format!(
                "UPDATE records SET seq = -1 WHERE seq = {seq}; UPDATE records SET seq = {seq} WHERE seq = {other};
                 UPDATE records SET seq = {other} WHERE seq = -1"
            ),
        };
        let report = assert_named(&statement, |root| sql(root, &statement));
        let named = report.problems.iter().any(|problem| match problem.position {
            Position::Record { seq: at } => at == seq,
            Position::Records { first, last } => (first..=last).contains(&seq),
            _ => false,
        });
        assert!(named, "{statement}: {report:?}");
    }
}

#[test]
fn records_appended_with_a_correct_chain_are_still_forged() {
    let report = assert_named("a chained record", |root| {
        let last = logical(root).unwrap().pop().unwrap();
        let mut forged = StoredRecord { seq: RECORDS + 1, prev_hash: last.hash, ..last };
        forged.run_id = None;
        forged.run_seq = None;
        forged.hash = forged.computed_hash();
        Connection::open(database(root))
            .unwrap()
            .execute(
                "INSERT INTO records (seq, at, kind, session_id, payload, prev_hash, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (
                    forged.seq as i64,
                    forged.at.0,
                    forged.kind.as_ref(),
                    forged.session_id.map(|id| id.to_u128().to_be_bytes()),
                    forged.payload.as_slice(),
                    forged.prev_hash.0,
                    forged.hash.0,
                ),
            )
            .unwrap();
    });
    assert_eq!(codes(&report)[0], "records_unsigned");
    assert_eq!(report.problems[0].position, Position::Records { first: RECORDS + 1, last: RECORDS + 1 });
}

#[test]
fn a_whole_chain_recomputed_after_an_edit_is_refuted_by_checkpoints() {
    let report = assert_named("a recomputed chain", |root| {
        let records = logical(root).unwrap();
        let database = Connection::open(database(root)).unwrap();
        let mut previous: Option<Digest> = None;
        for mut record in records.into_iter().filter(|record| record.seq >= 1_300) {
            if record.seq == 1_300 {
                record.at = Timestamp(record.at.0 + 1);
            }
            record.prev_hash = previous.unwrap_or(record.prev_hash);
            record.hash = record.computed_hash();
            previous = Some(record.hash);
            database
                .execute(
                    "UPDATE records SET at = ?2, prev_hash = ?3, hash = ?4 WHERE seq = ?1",
                    (record.seq as i64, record.at.0, record.prev_hash.0, record.hash.0),
                )
                .unwrap();
        }
    });
    assert_eq!(report.problems[0].position, Position::Records { first: 1_201, last: 1_300 }, "{report:?}");
}

#[test]
fn what_proves_or_derives_from_the_log_cannot_be_changed_either() {
    let changes = [
        ("UPDATE checkpoints SET head = zeroblob(32) WHERE count = 500", "checkpoint_refuted"),
        ("UPDATE checkpoints SET at = at + 1 WHERE count = 500", "checkpoint_refuted"),
        (
            "INSERT INTO checkpoints SELECT 99999, head, merkle_root, at, key_id, signature FROM head",
            "checkpoint_refuted",
        ),
        ("UPDATE head SET count = count - 1", "head_refuted"),
        ("DELETE FROM head", "head_missing"),
        ("UPDATE meta SET value = zeroblob(16)", "head_refuted"),
        ("DELETE FROM meta", "journal_id_missing"),
        ("UPDATE merkle_chunks SET root = zeroblob(32)", "chunk_changed"),
        ("DELETE FROM merkle_chunks", "chunk_changed"),
        ("UPDATE kinds SET n = n + 1 WHERE kind = 'note'", "projection_changed"),
        ("DELETE FROM run_heads WHERE first_seq = 1", "projection_changed"),
        ("CREATE TRIGGER hide AFTER INSERT ON records BEGIN DELETE FROM kinds; END", "schema_changed"),
        ("DROP INDEX records_by_run", "schema_changed"),
        ("UPDATE segments SET file_digest = zeroblob(32)", "segment_changed"),
        ("UPDATE segments SET last_seq = 1023", "segment_changed"),
        ("DELETE FROM segments", "records_missing"),
    ];
    for (statement, code) in changes {
        let report = assert_named(statement, |root| sql(root, statement));
        assert!(codes(&report).contains(&code), "{statement}: {report:?}");
    }
}

#[test]
fn missing_or_changed_files_are_named() {
    let report = assert_named("a missing segment", |root| fs::remove_file(segment(root)).unwrap());
    assert_eq!(report.problems[0].position, Position::Records { first: 1, last: 1_024 });
    let artifact = |root: &Path| {
        let record = logical(original()).unwrap().into_iter().find(|r| r.payload.len() > 2_000).unwrap();
        let name = Digest::of(&record.payload).to_hex();
        (record.seq, root.join("artifacts").join(&name[..2]).join(&name))
    };
    let (seq, _) = artifact(original());
    let report = assert_named("a missing artifact", |root| fs::remove_file(artifact(root).1).unwrap());
    assert_eq!((codes(&report)[0], &report.problems[0].position), ("artifact_missing", &Position::Record { seq }));
    let report = assert_named("a changed artifact", |root| fs::write(artifact(root).1, "\"other\"").unwrap());
    assert_eq!((codes(&report)[0], &report.problems[0].position), ("artifact_changed", &Position::Record { seq }));
    assert_named("a missing anchor", |root| fs::remove_file(root.join("journal/anchor")).unwrap());
    assert_named("a missing key", |root| fs::remove_file(root.join("keys/journal.pub")).unwrap());
    assert_named("a missing database", |root| fs::remove_file(database(root)).unwrap());
}

#[test]
fn an_older_copy_is_recognised_by_the_anchor_kept_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (state, older) = (dir.path().join("state"), dir.path().join("older"));
    copy_dir(original(), &state);
    copy_dir(original(), &older);
    let journal = Journal::open(options(&state)).unwrap();
    journal.append_blocking(vec![note(1), note(2), note(3)]).unwrap();
    journal.close_blocking().unwrap();
    let kept = dir.path().join("kept-elsewhere");
    fs::copy(state.join("journal/anchor"), &kept).unwrap();
    assert!(check_with(&state, Some(&kept)).is_sound());

    // Only the database goes back.
    fs::copy(database(&older), database(&state)).unwrap();
    let report = check(&state);
    let expected = Position::Records { first: RECORDS + 1, last: RECORDS + 3 };
    assert_eq!(report.problems[0].position, expected, "{report:?}");
    // Everything goes back; only what was kept elsewhere tells.
    assert!(check(&older).is_sound());
    let report = check_with(&older, Some(&kept));
    assert_eq!(report.problems[0].position, expected, "{report:?}");
}

#[test]
fn a_change_in_the_write_ahead_log_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let journal = Journal::open(options(&state)).unwrap();
    for n in 0..60 {
        journal.append_blocking(vec![note(n)]).unwrap();
    }
    // A copy of a state in use is what a crash leaves.
    let crashed = dir.path().join("crashed");
    copy_dir(&state, &crashed);
    fs::remove_file(crashed.join("journal/journal.db-shm")).unwrap();
    let report = check(&crashed);
    assert!(report.is_sound() && report.records == 60, "{report:?}");
    for number in 1..=25_u64 {
        let copy = dir.path().join(format!("copy-{number}"));
        copy_dir(&state, &copy);
        fs::remove_file(copy.join("journal/journal.db-shm")).unwrap();
        let file = fs::OpenOptions::new().write(true).read(true).open(copy.join("journal/journal.db-wal")).unwrap();
        let mut random = Random(number * 31_337);
        let at = random.below(file.metadata().unwrap().len());
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
        let changed = logical(&copy) != logical(&crashed);
        let report = check(&copy);
        assert!(!changed || !report.is_sound(), "trial {number} at {at}: {report:?}");
    }
}
