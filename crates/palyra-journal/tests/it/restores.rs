//! Whoever can write to the state root can let another key sign, or let the tables' digests begin anew; neither happens without being told until a person
//! acknowledges it.

use std::fs;
use std::path::Path;

use palyra_common::{Digest, Timestamp};
use palyra_journal::rusqlite::Connection;
use palyra_journal::{Finding, Journal, JournalError, RestoredNote, accept_restore, restore};

use crate::support::{check, code, codes, copy_dir, fill, open, options};

/// A journal, and a copy of it whose key and restore note somebody else wrote.
struct Forged {
    _directory: tempfile::TempDir,
    root: std::path::PathBuf,
    former: Digest,
    forged: Digest,
}

fn journal_of(root: &Path, records: u64) -> Digest {
    let mut options = options(root);
    options.checkpoint_every = 64;
    let journal = Journal::open(options).unwrap();
    fill(&journal, records);
    let key = journal.public_key().id();
    journal.close_blocking().unwrap();
    key
}

/// Puts the key of another journal in place, as whoever can write to the state root could.
fn forge(note: impl FnOnce(RestoredNote) -> RestoredNote) -> Forged {
    let directory = tempfile::tempdir().unwrap();
    let (root, other) = (directory.path().join("state"), directory.path().join("other"));
    let former = journal_of(&root, 300);
    let forged = journal_of(&other, 3);
    fs::copy(other.join("keys/journal.key"), root.join("keys/journal.key")).unwrap();
    let plain = RestoredNote { at: Timestamp(7), records: 300, key_id: forged, started: false, accepted: true };
    write_note(&root, &note(plain));
    Forged { _directory: directory, root, former, forged }
}

fn write_note(root: &Path, note: &RestoredNote) {
    fs::write(root.join("restored.json"), serde_json::to_vec(note).unwrap()).unwrap();
}

fn acknowledge_by_hand(root: &Path, through_seq: u64, key_id: Digest) {
    let text = serde_json::json!({ "through_seq": through_seq, "key_id": key_id });
    fs::write(root.join("restore-accepted.json"), text.to_string()).unwrap();
}

fn told(journal: &Journal) -> Option<Finding> {
    journal.warnings().into_iter().find(|finding| finding.code == "signing_key_replaced")
}

#[test]
fn a_forged_restore_is_told_until_a_person_acknowledges_it() {
    let Forged { _directory, root, former, forged } = forge(|note| note);
    let before = check(&root);
    assert!(!before.is_complete(), "{before:?}");
    assert!(before.unverified.iter().any(|what| what.contains(&forged.to_string())), "{before:?}");

    for _ in 0..2 {
        let journal = open(&root);
        let told = told(&journal).unwrap();
        for key in [former, forged] {
            assert!(told.message.contains(&key.to_string()), "{told:?}");
        }
        journal.close_blocking().unwrap();
        // Neither the note nor its absence says anything any more.
        let _ = fs::remove_file(root.join("restored.json"));
        let report = check(&root);
        assert_eq!(codes(&report), ["restore_unacknowledged"], "{report:?}");
        assert_eq!(report.problems[0].position.to_string(), "record 301");
    }

    let accepted = accept_restore(&root).unwrap();
    assert_eq!((accepted.former_key_id, accepted.key_id, accepted.acknowledged), (Some(former), forged, true));
    assert_eq!(code(&accept_restore(&root).unwrap_err()), "restore_not_found", "once is enough");
    let journal = open(&root);
    assert_eq!(told(&journal), None);
    journal.close_blocking().unwrap();
    open(&root).close_blocking().unwrap();
    let report = check(&root);
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.remarks.len(), 1, "it stays to be seen: {report:?}");
    assert!(report.remarks[0].contains(&former.to_string()) && report.remarks[0].contains("record 302"), "{report:?}");
    assert_eq!(report.records, 302, "both are on record, once each");
}

#[test]
fn no_other_file_makes_a_key_the_journals() {
    let refused = |forged: &Forged| match Journal::open(options(&forged.root)) {
        Err(error @ JournalError::Key { .. }) => error.to_string(),
        other => panic!("another key was adopted: {other:?}"),
    };
    refused(&forge(|note| RestoredNote { started: true, ..note }));
    refused(&forge(|note| RestoredNote { key_id: Digest::of(b"neither"), ..note }));
    let forged = forge(|note| note);
    fs::remove_file(forged.root.join("restored.json")).unwrap();
    refused(&forged);
    // The word about a restore does not restore.
    acknowledge_by_hand(&forged.root, u64::MAX / 2, forged.forged);
    refused(&forged);
}

#[test]
fn an_anchor_of_the_new_key_makes_it_no_more_genuine() {
    let directory = tempfile::tempdir().unwrap();
    let (root, twin) = (directory.path().join("state"), directory.path().join("twin"));
    journal_of(&root, 100);
    // The same log with another key, started once, so that its anchors are newer and signed by that key.
    copy_dir(&root, &twin);
    let other = directory.path().join("other");
    let forged = journal_of(&other, 1);
    fs::copy(other.join("keys/journal.key"), twin.join("keys/journal.key")).unwrap();
    let note = RestoredNote { at: Timestamp(7), records: 100, key_id: forged, started: false, accepted: true };
    write_note(&twin, &note);
    open(&twin).close_blocking().unwrap();

    for files in [vec!["journal.anchor"], vec!["journal/anchor"], vec!["journal.anchor", "journal/anchor"]] {
        let victim = tempfile::tempdir().unwrap();
        let victim = victim.path().join("state");
        copy_dir(&root, &victim);
        for file in files.iter().chain(&["keys/journal.key", "keys/journal.pub"]) {
            fs::copy(twin.join(file), victim.join(file)).unwrap();
        }
        let error = Journal::open(options(&victim)).unwrap_err();
        assert!(["journal_key_unusable", "journal_damaged"].contains(&code(&error).as_str()), "{files:?}: {error}");
    }
}

#[test]
fn a_word_given_before_the_start_lets_work_go_on_and_acknowledges_nothing() {
    let Forged { _directory, root, forged, .. } = forge(|note| RestoredNote { accepted: false, ..note });
    let accepted = accept_restore(&root).unwrap();
    assert!(!accepted.acknowledged, "{accepted:?}");
    acknowledge_by_hand(&root, 301, forged);
    let journal = open(&root);
    assert!(!journal.restore_waits());
    assert!(told(&journal).is_some(), "nobody can have seen it");
    journal.close_blocking().unwrap();
    assert_eq!(codes(&check(&root)), ["restore_unacknowledged"]);
    // A word about another key is about nothing here.
    acknowledge_by_hand(&root, 301, Digest::of(b"neither"));
    let journal = open(&root);
    assert!(told(&journal).is_some());
    journal.close_blocking().unwrap();
}

#[test]
fn digests_do_not_begin_anew_in_silence() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("state");
    let key_id = journal_of(&root, 300);
    Connection::open(root.join("journal/journal.db")).unwrap().execute("DELETE FROM checkpoints", []).unwrap();
    assert!(codes(&check(&root)).contains(&"table_changed"));
    write_note(&root, &RestoredNote { at: Timestamp(7), records: 300, key_id, started: false, accepted: true });
    let journal = open(&root);
    let codes_of: Vec<String> = journal.warnings().into_iter().map(|finding| finding.code).collect();
    assert_eq!(codes_of, ["restore_unacknowledged"]);
    journal.close_blocking().unwrap();
    assert_eq!(codes(&check(&root)), ["restore_unacknowledged"]);
}

#[test]
fn a_backup_of_a_state_that_nobody_acknowledged_can_be_restored() {
    let Forged { _directory, root, .. } = forge(|note| note);
    let journal = open(&root);
    let copy = root.with_file_name("copy");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(journal.backup(copy.clone(), Vec::new())).unwrap();
    journal.close_blocking().unwrap();
    let target = root.with_file_name("target");
    restore(&copy, &target, Timestamp(9)).unwrap();
    let journal = open(&target);
    assert_eq!(journal.warnings().iter().filter(|finding| finding.code == "signing_key_replaced").count(), 2);
    journal.close_blocking().unwrap();
    let accepted = accept_restore(&target).unwrap();
    assert!(accepted.acknowledged);
    open(&target).close_blocking().unwrap();
    assert_eq!(check(&target).remarks.len(), 2);
}
