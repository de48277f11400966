//! Backups are taken while the journal is in use, verify on their own, and restore to a state that goes on.

use std::fs;

use palyra_common::Timestamp;
use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, NewRecord, RESTORED_KIND, accept_restore, restore};

use crate::support::{check, code, codes, fill, note, open, options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_a_state_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut rotating = options(&dir.path().join("state"));
    rotating.segment_records = 1024;
    rotating.inline_payload_bytes = 1000;
    let journal = Journal::open(rotating).unwrap();
    fill(&journal, 3_000);
    let big = format!("\"{}\"", "y".repeat(3_000)).into_bytes();
    journal.append(vec![NewRecord::new("big", Timestamp(3), big.clone())]).await.unwrap();
    let writer = journal.clone();
    let writing = tokio::spawn(async move {
        for n in 0..300 {
            writer.append(vec![note(n)]).await.unwrap();
        }
    });
    let copy = dir.path().join("copy");
    let report = journal.backup(copy.clone(), vec!["the configuration".to_owned()]).await.unwrap();
    writing.await.unwrap();
    assert!(report.records >= 3_001 && report.artifacts == 1, "{report:?}");
    let verified = check(&copy);
    assert!(verified.is_sound(), "{verified:?}");
    assert_eq!(verified.records, report.records);
    assert!(!copy.join("keys/journal.key").exists(), "the private key is in no backup");
    assert_eq!(code(&journal.backup(copy.clone(), Vec::new()).await.unwrap_err()), "would_overwrite");
    let used = restore(&copy, &dir.path().join("state"), Timestamp(0)).unwrap_err();
    assert_eq!(code(&used), "state_in_use");
    journal.close().await.unwrap();
    let used = restore(&copy, &dir.path().join("state"), Timestamp(0)).unwrap_err();
    assert_eq!(code(&used), "would_overwrite");

    let other = dir.path().join("other");
    let done = restore(&copy, &other, Timestamp(0)).unwrap();
    assert_eq!(done.records, report.records);
    assert!(done.left_out.contains(&"keys/journal.key".to_owned()), "{done:?}");
    assert_eq!(done.left_out.last().map(String::as_str), Some("the configuration"), "a restore says it again");
    let restored = open(&other);
    assert_eq!(restored.head().count, report.records + 1);
    let record = restored.read(move |r| r.record(report.records + 1)).await.unwrap();
    assert_eq!(record.kind, RESTORED_KIND);
    let said: serde_json::Value = serde_json::from_slice(&record.payload).unwrap();
    assert_eq!(said["key_changed"], true, "{said}");
    assert_eq!(said["records"], report.records, "{said}");
    assert_eq!(restored.read(|r| r.record(3_001)).await.unwrap().payload, big);
    fill(&restored, 10);
    restored.prove(5).await.unwrap().verify_with(&restored.public_key()).unwrap();
    restored.close().await.unwrap();
    let again = open(&other);
    assert_eq!(again.head().count, report.records + 11, "it is on record once");
    again.close().await.unwrap();
    let verified = check(&other);
    assert_eq!(codes(&verified), ["restore_unacknowledged"], "old checkpoints keep their key: {verified:?}");
    accept_restore(&other).unwrap();
    open(&other).close_blocking().unwrap();
    let verified = check(&other);
    assert!(verified.is_sound(), "{verified:?}");
}

#[tokio::test]
async fn a_changed_backup_is_not_restored() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(&dir.path().join("state"));
    fill(&journal, 100);
    let copy = dir.path().join("copy");
    journal.backup(copy.clone(), Vec::new()).await.unwrap();
    Connection::open(copy.join("journal/journal.db"))
        .unwrap()
        .execute("UPDATE records SET payload = x'30' WHERE seq = 50", [])
        .unwrap();
    let target = dir.path().join("target");
    let error = restore(&copy, &target, Timestamp(0)).unwrap_err();
    assert_eq!(code(&error), "backup_unusable");
    assert!(error.to_string().contains("record 50"), "{error}");
    assert!(!target.join("journal/journal.db").exists());
    let nothing = restore(&dir.path().join("nowhere"), &target, Timestamp(0)).unwrap_err();
    assert_eq!(code(&nothing), "journal_not_found");
    fs::remove_dir_all(&copy).unwrap();
}
