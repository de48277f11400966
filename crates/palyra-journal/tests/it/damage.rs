//! A damaged state is set aside, named by position and never recreated in silence.

use std::fs;
use std::path::Path;

use palyra_common::Timestamp;
use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, JournalError, Severity, accept_loss, accept_restore, restore, state_health};

use crate::support::{check, code, copy_dir, fill, open, options};

fn database(root: &Path) -> std::path::PathBuf {
    root.join("journal/journal.db")
}

/// Something that happens to a state.
type Damage = fn(&Path);

/// A closed journal with some records.
fn state() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    fill(&journal, 300);
    journal.close_blocking().unwrap();
    dir
}

/// Opening must find the damage, set the file aside if there is one, and refuse again next time.
fn assert_refused(root: &Path, what: &str) -> JournalError {
    let had_file = database(root).exists();
    let error = Journal::open(options(root)).unwrap_err();
    assert_eq!(code(&error), "journal_damaged", "{what}: {error}");
    assert!(!database(root).exists(), "{what}: the file is set aside");
    let JournalError::Damaged { set_aside, .. } = &error else { panic!("{error}") };
    assert_eq!(set_aside.as_ref().is_some_and(|path| path.exists()), had_file, "{what}");
    let again = Journal::open(options(root)).unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "{what}");
    assert!(!database(root).exists(), "{what}: nothing is created");
    let findings = state_health(root);
    assert_eq!((findings[0].code.as_str(), findings[0].severity), ("journal_damaged", Severity::Critical), "{what}");
    error
}

#[test]
fn every_kind_of_damage_refuses() {
    let kinds: Vec<(&str, Damage)> = vec![
        ("not a database", |root| fs::write(database(root), "something else entirely, not a database").unwrap()),
        ("empty file", |root| fs::write(database(root), "").unwrap()),
        ("missing file", |root| fs::remove_file(database(root)).unwrap()),
        ("cut to a page", |root| {
            let file = fs::OpenOptions::new().write(true).open(database(root)).unwrap();
            file.set_len(4096).unwrap();
        }),
        ("zeroed pages", |root| {
            let mut bytes = fs::read(database(root)).unwrap();
            bytes[4096..].fill(0);
            fs::write(database(root), bytes).unwrap();
        }),
        ("last record gone", |root| {
            Connection::open(database(root)).unwrap().execute("DELETE FROM records WHERE seq = 300", []).unwrap();
        }),
        ("last record changed", |root| {
            Connection::open(database(root)).unwrap().execute("UPDATE records SET at = 0 WHERE seq = 299", []).unwrap();
        }),
        ("record added", |root| {
            let sql = "INSERT INTO records SELECT 301, at, kind, session_id, run_id, run_seq, payload, artifact, prev_hash, hash, seal
                       FROM records WHERE seq = 300";
            Connection::open(database(root)).unwrap().execute(sql, []).unwrap();
        }),
        ("head changed", |root| {
            Connection::open(database(root)).unwrap().execute("UPDATE head SET count = 299", []).unwrap();
        }),
        ("anchor missing", |root| fs::remove_file(root.join("journal/anchor")).unwrap()),
        ("anchor garbled", |root| fs::write(root.join("journal/anchor"), "garbled").unwrap()),
    ];
    for (what, damage) in kinds {
        let dir = state();
        damage(dir.path());
        assert_refused(dir.path(), what);
    }
}

#[test]
fn a_missing_segment_refuses_and_destroys_nothing() {
    let kinds: Vec<(&str, Damage)> = vec![
        ("segment file missing", |root| {
            fs::remove_file(root.join("journal/segments/000000000001-000000001024.db")).unwrap();
        }),
        ("segment not registered", |root| {
            Connection::open(database(root)).unwrap().execute("DELETE FROM segments", []).unwrap();
        }),
        ("segment registered otherwise", |root| {
            Connection::open(database(root)).unwrap().execute("UPDATE segments SET first_seq = 2", []).unwrap();
        }),
    ];
    for (what, damage) in kinds {
        let dir = tempfile::tempdir().unwrap();
        let mut rotating = options(dir.path());
        rotating.segment_records = 1024;
        let journal = Journal::open(rotating).unwrap();
        fill(&journal, 1_500);
        let oldest = || {
            journal.read_blocking(|r| {
                Ok(r.connection().query_row("SELECT min(seq) FROM records", [], |row| row.get::<_, i64>(0))?)
            })
        };
        while oldest().unwrap() <= 1024 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        journal.close_blocking().unwrap();
        let segments = |root: &Path| fs::read_dir(root.join("journal/segments")).unwrap().count();
        damage(dir.path());
        let before = segments(dir.path());
        assert_refused(dir.path(), what);
        assert_eq!(segments(dir.path()), before, "{what}");
    }
}

#[test]
fn an_older_copy_of_the_database_is_recognised() {
    let dir = state();
    let older = fs::read(database(dir.path())).unwrap();
    let journal = open(dir.path());
    fill(&journal, 7);
    journal.close_blocking().unwrap();
    fs::write(database(dir.path()), older).unwrap();
    let error = assert_refused(dir.path(), "rollback");
    assert!(error.to_string().contains("records 301 to 307"), "{error}");
}

#[test]
fn a_loss_can_be_accepted_explicitly_and_deletes_nothing() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(code(&accept_loss(empty.path(), Timestamp(0)).unwrap_err()), "journal_not_found");
    let dir = state();
    assert_eq!(code(&accept_loss(dir.path(), Timestamp(0)).unwrap_err()), "loss_not_found");
    fs::write(database(dir.path()), "garbage garbage garbage").unwrap();
    assert_refused(dir.path(), "garbage");
    let lost = accept_loss(dir.path(), Timestamp(1_794_700_000_123)).unwrap();
    assert_eq!(code(&accept_loss(dir.path(), Timestamp(0)).unwrap_err()), "loss_not_found", "accepted once");
    let names: Vec<_> = fs::read_dir(&lost).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains(".damaged-")), "{names:?}");
    assert!(names.contains(&"anchor".to_owned()), "{names:?}");
    let journal = open(dir.path());
    assert_eq!(journal.head().count, 0);
    fill(&journal, 3);
    journal.close_blocking().unwrap();
    assert!(check(dir.path()).is_sound());
    assert!(state_health(dir.path()).iter().any(|finding| finding.code == "damaged_remains"));
}

#[test]
fn a_backup_heals_a_damaged_state() {
    let dir = state();
    let backup = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(journal.backup(backup.path().join("b"), Vec::new())).unwrap();
    fill(&journal, 50);
    journal.close_blocking().unwrap();
    fs::write(database(dir.path()), "garbage").unwrap();
    assert_refused(dir.path(), "garbage");
    let report = restore(&backup.path().join("b"), dir.path(), Timestamp(9)).unwrap();
    assert_eq!(report.records, 300);
    let journal = open(dir.path());
    assert_eq!(journal.head().count, 301, "that it was restored is on record");
    fill(&journal, 5);
    journal.close_blocking().unwrap();
    accept_restore(dir.path()).unwrap();
    open(dir.path()).close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn a_missing_or_exposed_key_refuses_without_touching_the_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = state();
    let key = dir.path().join("keys/journal.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(code(&Journal::open(options(dir.path())).unwrap_err()), "journal_key_unusable");
    assert!(state_health(dir.path()).iter().any(|finding| finding.code == "journal_key_unusable"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(state_health(dir.path()).iter().all(|finding| finding.severity < Severity::Critical));
    let aside = tempfile::tempdir().unwrap();
    copy_dir(&dir.path().join("keys"), aside.path());
    fs::remove_file(&key).unwrap();
    assert_eq!(code(&Journal::open(options(dir.path())).unwrap_err()), "journal_key_unusable");
    fs::copy(aside.path().join("journal.key"), &key).unwrap();
    assert_eq!(open(dir.path()).head().count, 300);
}
