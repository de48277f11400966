//! Commits that fail on purpose: callers are told, nothing half-done stays, the journal goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use palyra_common::Timestamp;
use palyra_journal::{FaultInjector, Journal, NewRecord};

use crate::support::{check, code, fill, note, on_tape, options};

#[derive(Debug, Default)]
struct EveryThird {
    after: AtomicU64,
}

impl FaultInjector for EveryThird {
    fn before_commit(&self, commit: u64) -> io::Result<()> {
        match commit % 6 {
            3 => Err(io::ErrorKind::StorageFull.into()),
            0 => Err(io::Error::other("the disk went away")),
            _ => Ok(()),
        }
    }
    fn after_commit(&self, _commit: u64) {
        self.after.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_failed_commit_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(EveryThird::default());
    let mut options = options(dir.path());
    options.faults = Some(Arc::clone(&faults) as Arc<dyn FaultInjector>);
    let journal = Journal::open(options).unwrap();
    let (mut step, mut accepted, mut codes) = (1, 0, Vec::new());
    for _ in 0..30 {
        match journal.append_blocking(vec![on_tape(1, step), note(step)]) {
            Ok(appended) => {
                accepted += 2;
                step += 1;
                assert_eq!(appended.last_seq, accepted);
            }
            Err(error) => codes.push(code(&error)),
        }
        assert_eq!(journal.head().count, accepted);
    }
    // A full disk is reported at once; an error that passes is tried again and nobody hears of it.
    assert_eq!(codes, ["disk_full"; 6]);
    assert_eq!(faults.after.load(Ordering::SeqCst), 24);
    journal.admission().unwrap();
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.records, accepted);
}

/// Fails while it is switched on.
#[derive(Debug, Default)]
struct Outage(AtomicBool);

impl FaultInjector for Outage {
    fn before_commit(&self, _commit: u64) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

#[test]
fn an_outage_is_reported_and_ends_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Outage::default());
    let mut options = options(dir.path());
    options.faults = Some(Arc::clone(&faults) as Arc<dyn FaultInjector>);
    let journal = Journal::open(options).unwrap();
    journal.append_blocking(vec![on_tape(1, 1)]).unwrap();
    journal.admission().unwrap();
    faults.0.store(true, Ordering::SeqCst);
    let error = journal.append_blocking(vec![on_tape(1, 2)]).unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(code(&error), "storage_failed");
    assert_eq!(code(&journal.admission().unwrap_err()), "storage_failed");
    assert_eq!(journal.head().count, 1);
    faults.0.store(false, Ordering::SeqCst);
    // Nobody appends anything: the journal finds out by itself.
    let began = Instant::now();
    while journal.admission().is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the outage never ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(journal.append_blocking(vec![on_tape(1, 2)]).unwrap().last_seq, 2, "the refused batch left a trace");
    journal.close_blocking().unwrap();
    assert!(check(dir.path()).is_sound());
}

/// How many records of this kind there are, beside an outage of writing or after it.
fn written(journal: &Journal, kind: &'static str) -> usize {
    let all = journal.read_blocking(|reader| reader.range(1, 1_000)).unwrap();
    all.iter().filter(|record| record.kind == kind).count()
}

#[test]
fn what_nobody_waits_for_is_kept_until_it_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Outage::default());
    let mut options = options(dir.path());
    options.faults = Some(Arc::clone(&faults) as Arc<dyn FaultInjector>);
    let journal = Journal::open(options).unwrap();
    let detached = |seq| NewRecord::new("detached", Timestamp(seq), b"{}".to_vec());
    journal.append_detached(vec![detached(1)]).unwrap();
    faults.0.store(true, Ordering::SeqCst);
    for seq in 2..=40 {
        journal.append_detached(vec![detached(seq)]).unwrap();
    }
    assert!(journal.append_blocking(vec![note(1)]).is_err(), "the store can be written");
    faults.0.store(false, Ordering::SeqCst);
    let began = Instant::now();
    while written(&journal, "detached") < 40 {
        assert!(began.elapsed() < Duration::from_secs(30), "{} of 40 are there", written(&journal, "detached"));
        std::thread::sleep(Duration::from_millis(10));
    }
    journal.append_blocking(vec![note(2)]).unwrap();
    let order: Vec<_> = journal.read_blocking(|reader| reader.range(1, 1_000)).unwrap();
    let order: Vec<_> = order.iter().filter(|record| record.kind == "detached").map(|record| record.at.0).collect();
    assert_eq!(order, (1..=40).collect::<Vec<_>>());
    // What is kept at a stop is written by it, if that can be.
    journal.append_detached(vec![detached(41)]).unwrap();
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound() && report.records == 42, "{report:?}");
}

#[tokio::test]
async fn a_patient_append_waits_for_the_store_or_for_whoever_gives_up() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Outage::default());
    let mut options = options(dir.path());
    options.faults = Some(Arc::clone(&faults) as Arc<dyn FaultInjector>);
    let journal = Journal::open(options).unwrap();
    faults.0.store(true, Ordering::SeqCst);
    let given_up = journal.append_patiently(vec![note(1)], std::future::ready(())).await.unwrap_err();
    assert!(given_up.is_transient(), "{given_up}");
    let waiting = tokio::spawn({
        let journal = journal.clone();
        async move { journal.append_patiently(vec![note(2)], std::future::pending()).await }
    });
    while journal.admission().is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!waiting.is_finished());
    faults.0.store(false, Ordering::SeqCst);
    assert_eq!(waiting.await.unwrap().unwrap().last_seq, 1);
    let refused = journal.append_patiently(Vec::new(), std::future::pending()).await.unwrap_err();
    assert_eq!(code(&refused), "invalid_record", "waiting would not make it better");
    journal.close().await.unwrap();
}

/// Fails one read.
#[derive(Debug, Default)]
struct OneRead(AtomicBool);

impl FaultInjector for OneRead {
    fn before_commit(&self, _commit: u64) -> io::Result<()> {
        Ok(())
    }
    fn before_read(&self) -> io::Result<()> {
        if self.0.swap(false, Ordering::SeqCst) { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_read_that_fails_fails_alone_and_shows_until_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(OneRead::default());
    let mut options = options(dir.path());
    options.faults = Some(Arc::clone(&faults) as Arc<dyn FaultInjector>);
    let journal = Journal::open(options).unwrap();
    journal.append_blocking(vec![note(1)]).unwrap();
    faults.0.store(true, Ordering::SeqCst);
    let failed = journal.read_blocking(|reader| reader.range(1, 1)).unwrap_err();
    assert!(failed.is_transient() && code(&failed) == "storage_failed", "{failed}");
    assert_eq!(journal.failed_read().map(|error| error.to_string()), Some(failed.to_string()));
    faults.0.store(true, Ordering::SeqCst);
    assert!(journal.check_reads().await.is_err(), "the next read fails as well");
    journal.check_reads().await.unwrap();
    assert!(journal.failed_read().is_none());
    // What was asked for and is not there is no failure of the disk.
    assert!(journal.read_blocking(|reader| reader.record(7)).is_err());
    assert!(journal.failed_read().is_none());
    assert_eq!(written(&journal, "note"), 1);
    journal.append_blocking(vec![note(2)]).unwrap();
}

#[test]
fn a_segment_that_cannot_be_written_shows_in_health_until_one_can() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.segment_records = 1;
    let journal = Journal::open(options).unwrap();
    let segments = dir.path().join("journal/segments");
    std::fs::remove_dir(&segments).unwrap();
    std::fs::write(&segments, "not a directory").unwrap();
    let fails = || journal.warnings().iter().any(|finding| finding.code == "journal_upkeep_failed");
    let began = Instant::now();
    while !fails() {
        fill(&journal, 1_100);
        assert!(began.elapsed() < Duration::from_secs(30), "nobody is told");
    }
    std::fs::remove_file(&segments).unwrap();
    std::fs::create_dir(&segments).unwrap();
    while fails() {
        fill(&journal, 1_100);
        assert!(began.elapsed() < Duration::from_secs(30), "it is never tried again");
    }
    journal.close_blocking().unwrap();
    assert!(check(dir.path()).is_sound());
}
