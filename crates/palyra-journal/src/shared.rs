//! What the writer thread and the handles both see: the head, how much waits, and whether the store can be relied on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use palyra_common::Timestamp;

use crate::error::JournalError;
use crate::record::Head;
use crate::restored::BegunRestore;

/// Records that may wait in memory; more are refused with `journal_busy`, so a slow disk cannot eat all memory.
const MAX_WAITING_RECORDS: u64 = 256 * 1024;
/// Bytes of payload that may wait in memory, for the same reason.
const MAX_WAITING_BYTES: u64 = 512 * 1024 * 1024;

/// What the writer does beside committing. None of it keeps records from being durable, and all of it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Upkeep {
    Anchor,
    Fold,
    Seal,
    Trim,
}

impl Upkeep {
    /// What does not happen while it fails.
    pub(crate) fn failing(self) -> &'static str {
        match self {
            Self::Anchor => {
                "the anchor cannot be written, so a later rollback of the journal would be harder to detect"
            }
            Self::Fold => "the write-ahead log cannot be checkpointed and keeps growing",
            Self::Seal => "old records cannot be archived into a segment, so the database keeps growing",
            Self::Trim => "archived records cannot be removed from the database before the next start",
        }
    }
}

/// What was noticed when the journal was opened and does not keep it from working.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// Tables of the journal itself that somebody changed.
    pub(crate) changed_tables: Vec<String>,
    /// Records that a projection refuses.
    pub(crate) quarantined: u64,
    /// Whether the state was restored from a backup and nobody said yet that its work may go on.
    pub(crate) restore_waits: bool,
    /// When the newest record that was there already was made, or the last statement about it was signed.
    pub(crate) last_alive_at: Option<Timestamp>,
    /// The restore that this is the first start after.
    pub(crate) begun_restore: Option<BegunRestore>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    head: RwLock<Head>,
    waiting: AtomicU64,
    waiting_bytes: AtomicU64,
    ended: AtomicBool,
    failure: Mutex<Option<JournalError>>,
    /// Why the store could not be written last; gone with the next commit.
    outage: Mutex<Option<JournalError>>,
    /// What the writer does beside committing and could not do the last time, with the reason.
    upkeep: Mutex<BTreeMap<Upkeep, String>>,
    pub(crate) opened: Opened,
}

impl Shared {
    pub(crate) fn new(head: Head, opened: Opened) -> Self {
        Self {
            head: RwLock::new(head),
            waiting: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            failure: Mutex::new(None),
            outage: Mutex::new(None),
            upkeep: Mutex::default(),
            opened,
        }
    }

    pub(crate) fn head(&self) -> Head {
        *self.head.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_head(&self, head: Head) {
        *self.head.write().unwrap_or_else(PoisonError::into_inner) = head;
    }

    /// Asks for room for some records.
    pub(crate) fn reserve(&self, records: u64, bytes: u64) -> Result<(), JournalError> {
        let waiting = self.waiting.fetch_add(records, Ordering::Relaxed);
        let waiting_bytes = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if waiting > MAX_WAITING_RECORDS || waiting_bytes > MAX_WAITING_BYTES {
            self.taken(records, bytes);
            return Err(JournalError::Busy { waiting });
        }
        Ok(())
    }

    /// Some records no longer wait.
    pub(crate) fn taken(&self, records: u64, bytes: u64) {
        self.waiting.fetch_sub(records, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Some records that were taken wait once more. There was room for them before.
    pub(crate) fn waits_again(&self, records: u64, bytes: u64) {
        self.waiting.fetch_add(records, Ordering::Relaxed);
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The writer is gone, in good order or not.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Remembers damage found while running: from then on no new work is admitted.
    pub(crate) fn note_failure(&self, error: &JournalError) {
        if matches!(error, JournalError::Damaged { .. }) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        }
    }

    /// The store cannot be written now; no new work is admitted until it can be again.
    pub(crate) fn begin_outage(&self, error: &JournalError) {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
    }

    /// Something was written.
    pub(crate) fn end_outage(&self) {
        if self.outage.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!("the journal can be written again");
        }
    }

    pub(crate) fn outage(&self) -> Option<JournalError> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers how an upkeep task went: a failure is shown by health until the task succeeds.
    pub(crate) fn note_upkeep(&self, task: Upkeep, outcome: Result<(), String>) {
        let mut failed = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(()) => {
                failed.remove(&task);
            }
            Err(reason) => {
                failed.insert(task, reason);
            }
        }
    }

    /// The upkeep tasks that failed the last time, and why.
    pub(crate) fn failed_upkeep(&self) -> Vec<(Upkeep, String)> {
        let failed = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        failed.iter().map(|(task, reason)| (*task, reason.clone())).collect()
    }

    pub(crate) fn failure(&self) -> Option<JournalError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
