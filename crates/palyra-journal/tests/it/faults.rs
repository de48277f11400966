//! Commits that fail on purpose: callers are told, nothing half-done stays, the journal goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use palyra_journal::{FaultInjector, Journal};

use crate::support::{check, code, note, on_tape, options};

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
    assert_eq!(codes.len(), 10);
    assert!(codes.contains(&"disk_full".to_owned()) && codes.contains(&"storage_failed".to_owned()), "{codes:?}");
    assert_eq!(faults.after.load(Ordering::SeqCst), 20);
    journal.admission().unwrap();
    journal.close_blocking().unwrap();
    let report = check(dir.path());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.records, accepted);
}
