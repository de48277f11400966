//! Salvage reads what is left: of a damaged file, of one that was set aside, and of journals that were given up.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use palyra_common::Timestamp;
use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, SalvageReport, accept_loss, restore, salvage};

use crate::support::{code, fill, note, open, options};

/// What is salvaged, and how often each number occurs.
fn salvaged(root: &Path) -> (SalvageReport, BTreeMap<u64, usize>) {
    let mut numbers = BTreeMap::new();
    let report = salvage(root, &mut |found| {
        *numbers.entry(found.record.seq).or_default() += 1;
        Ok(())
    });
    (report.unwrap(), numbers)
}

fn filled(root: &Path, records: u64) {
    let journal = open(root);
    fill(&journal, records);
    journal.close_blocking().unwrap();
}

fn damage(root: &Path) {
    let database = root.join("journal/journal.db");
    Connection::open(&database).unwrap().execute("DELETE FROM records WHERE seq = 300", []).unwrap();
    let refused = Journal::open(options(root)).unwrap_err();
    assert_eq!(code(&refused), "journal_damaged");
    assert!(!database.exists(), "it is set aside");
}

#[test]
fn a_changed_record_is_passed_on_and_named_doubtful() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 300);
    let database = Connection::open(dir.path().join("journal/journal.db")).unwrap();
    database.execute("UPDATE records SET payload = x'30' WHERE seq = 50", []).unwrap();
    database.execute("DELETE FROM records WHERE seq BETWEEN 100 AND 109", []).unwrap();
    drop(database);
    let (report, numbers) = salvaged(dir.path());
    assert_eq!((report.records, report.doubtful), (289, 1), "{report:?}");
    assert_eq!(numbers.len(), 290);
}

#[test]
fn a_file_with_unreadable_pages_gives_what_is_around_them() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 5_000);
    let path = dir.path().join("journal/journal.db");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let (report, numbers) = salvaged(dir.path());
    assert!(report.records > 1_000, "{report:?}");
    assert!(report.records + report.doubtful >= numbers.len() as u64, "{report:?}");
    assert!(numbers.contains_key(&1));
}

#[test]
fn what_was_set_aside_and_what_was_given_up_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 300);
    damage(dir.path());
    let (report, _) = salvaged(dir.path());
    assert_eq!(report.records, 299, "{report:?}");

    accept_loss(dir.path(), Timestamp(1_794_700_000_123)).unwrap();
    let (report, _) = salvaged(dir.path());
    assert_eq!(report.records, 299, "{report:?}");

    // The journal that was begun after it has numbers of its own, which hide none of the old ones.
    filled(dir.path(), 20);
    let (report, numbers) = salvaged(dir.path());
    assert_eq!(report.records, 319, "{report:?}");
    assert_eq!((numbers.get(&1), numbers.get(&20), numbers.get(&21)), (Some(&2), Some(&2), Some(&1)));
}

#[test]
fn a_restored_journal_repeats_nothing_of_the_one_that_it_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    fill(&journal, 200);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(journal.backup(backup.path().join("b"), Vec::new())).unwrap();
    fill(&journal, 100);
    journal.close_blocking().unwrap();
    damage(dir.path());
    restore(&backup.path().join("b"), dir.path(), Timestamp(9)).unwrap();
    let journal = open(dir.path());
    journal.append_blocking(vec![note(1)]).unwrap();
    journal.close_blocking().unwrap();
    let (report, numbers) = salvaged(dir.path());
    // 200 in both; 99 more of the damaged one; that it was restored and one note in the other.
    assert_eq!(report.records, 301, "{report:?}");
    assert_eq!((numbers.get(&200), numbers.get(&201), numbers.get(&203)), (Some(&1), Some(&2), Some(&1)));
    let nothing = tempfile::tempdir().unwrap();
    assert_eq!(code(&salvage(nothing.path(), &mut |_| Ok(())).unwrap_err()), "journal_not_found");
}
