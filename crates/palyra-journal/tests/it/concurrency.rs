//! Many writers at once: one order, no gaps, each writer's own order kept.

use std::collections::HashMap;

use palyra_common::RunId;

use crate::support::{check, on_tape, open};

const WRITERS: u64 = 64;
const EACH: u64 = 40;

#[test]
fn sixty_four_writers_share_one_gapless_log() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    std::thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let journal = journal.clone();
            scope.spawn(move || {
                let mut last = 0;
                for step in 1..=EACH {
                    let appended = journal.append_blocking(vec![on_tape(u128::from(writer), step)]).unwrap();
                    assert!(appended.last_seq > last, "a later append stands later");
                    assert!(journal.head().count >= appended.last_seq);
                    last = appended.last_seq;
                }
            });
        }
    });
    assert_eq!(journal.head().count, WRITERS * EACH);
    let mut steps: HashMap<RunId, u64> = HashMap::new();
    for (expected, record) in (1..).zip(journal.read_blocking(|r| r.range(1, usize::MAX)).unwrap()) {
        assert_eq!(record.seq, expected);
        let step = steps.entry(record.run_id.unwrap()).or_default();
        *step += 1;
        assert_eq!(record.run_seq, Some(*step));
    }
    assert_eq!(steps.len() as u64, WRITERS);
    let tape = journal.read_blocking(|r| r.run_tape(RunId::from_u128(7), 1, 1000)).unwrap();
    assert_eq!(tape.len() as u64, EACH);
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_without_waiting_keep_the_order_of_the_calls() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let pending: Vec<_> = (1..=300).map(|step| journal.append_nowait(vec![on_tape(1, step)])).collect();
    let mut last = 0;
    for (at, append) in pending.into_iter().enumerate() {
        // Every third answer is dropped unseen; its append happens all the same.
        if at % 3 != 0 {
            let appended = append.await.unwrap();
            assert!(appended.first_seq > last);
            last = appended.first_seq;
        }
    }
    assert_eq!(journal.head().count, 300);
}

#[test]
fn verification_beside_a_running_writer_is_never_alarmed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = journal.clone();
        let stop = &stop;
        scope.spawn(move || {
            let mut step = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                step += 1;
                writer.append_blocking(vec![on_tape(1, step)]).unwrap();
            }
        });
        let mut seen = 0;
        for _ in 0..8 {
            let report = check(dir.path());
            assert!(report.is_sound(), "{report:?}");
            assert!(report.records >= seen);
            seen = report.records;
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[tokio::test]
async fn a_read_may_be_the_last_to_let_go_of_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let (let_go, wait) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let held = journal.clone();
    let read = journal.read(move |_| {
        let _ = wait.recv();
        drop(held);
        let _ = tell.send(());
        Ok(())
    });
    // Whoever asked gives up, and with it everything else that holds the journal.
    assert!(tokio::time::timeout(std::time::Duration::from_millis(1), read).await.is_err());
    drop(journal);
    drop(let_go);
    told.recv().expect("the read goes on to its end");
    open(dir.path()).close().await.unwrap();
}
