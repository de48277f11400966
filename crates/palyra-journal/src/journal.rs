//! The handle that the rest of Palyra holds: appending, reading, proving, closing.
//!
//! Cheap to clone. The threads behind it end when the journal is closed or the last handle goes; either way everything
//! that was accepted is written first.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use palyra_common::{Clock, Digest, Timestamp};
use tokio::sync::oneshot;

use crate::artifacts::ArtifactStore;
use crate::backup;
use crate::block::block_on;
use crate::checkpoint::SignedCheckpoint;
use crate::collect::{Collected, collect};
use crate::commit::{Batch, DuringOutage};
use crate::error::JournalError;
use crate::first_commit::FirstCommit;
use crate::health::{Finding, Severity, state_health};
use crate::keys::{JournalKey, PublicKey};
use crate::layout::{Layout, free_bytes};
use crate::open;
use crate::options::JournalOptions;
use crate::pool::ReaderPool;
use crate::proof::InclusionProof;
use crate::reader::Reader;
use crate::record::{Entry, Head, NewRecord};
use crate::restored;
use crate::restores::{Acknowledgement, Restore, Restores};
use crate::shared::Shared;
use crate::writer::{Command, Writer};

/// Pause before a batch is offered again to a store that cannot be written now.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Where a batch came to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Number of its first record.
    pub first_seq: u64,
    /// Number of its last record.
    pub last_seq: u64,
    /// The end of the log right after it.
    pub head: Head,
}

/// An append on its way. It happens whether or not anybody waits for it.
#[derive(Debug)]
#[must_use = "an append may fail, and only this says so"]
pub struct PendingAppend {
    state: Pending,
}

#[derive(Debug)]
enum Pending {
    Refused(Option<JournalError>),
    Sent(oneshot::Receiver<Result<Appended, JournalError>>),
}

impl PendingAppend {
    /// Blocks until the batch is durable or refused; async callers await instead.
    ///
    /// # Errors
    /// Why the batch was refused.
    pub fn wait(self) -> Result<Appended, JournalError> {
        block_on(self)
    }
}

impl Future for PendingAppend {
    type Output = Result<Appended, JournalError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().state {
            Pending::Refused(error) => Poll::Ready(Err(error.take().unwrap_or(JournalError::Closed))),
            Pending::Sent(answer) => {
                Pin::new(answer).poll(context).map(|answer| answer.unwrap_or(Err(JournalError::Closed)))
            }
        }
    }
}

/// The journal of one state root.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("root", &self.inner.layout.root).finish_non_exhaustive()
    }
}

struct Inner {
    layout: Layout,
    min_free_bytes: u64,
    commands: Sender<Command>,
    shared: Arc<Shared>,
    readers: ReaderPool,
    artifacts: ArtifactStore,
    key: Arc<JournalKey>,
    clock: Arc<dyn Clock>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Restores that nobody has acknowledged; set once the journal is open.
    unacknowledged: OnceLock<Vec<Restore>>,
}

impl Journal {
    /// Opens the state for writing, or begins a new journal where there never was one.
    ///
    /// # Errors
    /// `state_in_use`, `journal_damaged`, `journal_schema_newer`, `journal_key_unusable`, or what the file system said.
    pub fn open(options: JournalOptions) -> Result<Self, JournalError> {
        let (parts, key) = open::open(&options)?;
        let layout = Layout::new(options.root.clone());
        let shared = Arc::clone(&parts.shared);
        let (commands, received) = mpsc::channel();
        let readers = ReaderPool::start(&layout, &options)?;
        let writer = Writer::new(parts, received, commands.clone())?;
        let thread = std::thread::Builder::new()
            .name("journal-write".to_owned())
            .spawn(move || writer.run())
            .map_err(|e| JournalError::file("start a writer for", &layout.root, e))?;
        let artifacts = ArtifactStore::new(layout.artifacts_dir());
        artifacts.forget_unfinished();
        let inner = Inner {
            artifacts,
            layout,
            min_free_bytes: options.min_free_bytes,
            commands,
            shared,
            readers,
            key,
            clock: options.clock,
            writer: Mutex::new(Some(thread)),
            unacknowledged: OnceLock::new(),
        };
        let journal = Self { inner: Arc::new(inner) };
        journal.record_restore()?;
        journal.record_acknowledgement()?;
        Ok(journal)
    }

    /// Puts on record that the state was restored, at the first start after it.
    fn record_restore(&self) -> Result<(), JournalError> {
        let Some(restore) = &self.inner.shared.opened.begun_restore else { return Ok(()) };
        if !restore.is_on_record {
            let record = restore.record(self.inner.clock.now())?;
            self.append_blocking(vec![record])?;
        }
        restored::note_started(&self.inner.layout, &restore.note)
    }

    /// Puts a person's word about restores on record, and remembers those that nobody has acknowledged.
    fn record_acknowledgement(&self) -> Result<(), JournalError> {
        let unacknowledged = || self.read_blocking(|reader| Ok(Restores::unacknowledged(reader.connection())?));
        let mut open = unacknowledged()?;
        if let Some(said) = Acknowledgement::read(&self.inner.layout)? {
            // One that came before the restore was on record is about nothing that its writer can have seen.
            let begun = self.inner.shared.opened.begun_restore.is_some();
            if !begun && let Some(record) = said.record(&open, self.inner.clock.now())? {
                self.append_blocking(vec![record])?;
                open = unacknowledged()?;
            }
            Acknowledgement::remove(&self.inner.layout)?;
        }
        for restore in &open {
            tracing::warn!(seq = restore.seq, "{}; nobody has acknowledged it", restore.describe());
        }
        let _ = self.inner.unacknowledged.set(open);
        Ok(())
    }

    /// Appends records together or not at all; resolves when they are durable.
    ///
    /// # Errors
    /// Why the whole batch was refused.
    pub async fn append(&self, mut batch: Vec<NewRecord>) -> Result<Appended, JournalError> {
        let scope = FirstCommit::current().filter(|_| !batch.is_empty());
        let Some((scope, mark)) = scope.and_then(|scope| scope.take().map(|mark| (scope, mark))) else {
            return self.append_nowait(batch).await;
        };
        // Before the others, so that the last number stays that of the last record given.
        batch.insert(0, mark.clone());
        let appended = self.append_nowait(batch).await;
        if appended.is_err() {
            scope.put_back(mark);
        }
        appended
    }

    /// As [`Journal::append`], and waits while the store cannot be written: for the record of something that has happened already. Ends with the failure if
    /// `give_up` ends first.
    ///
    /// # Errors
    /// Why the whole batch was refused, or why it could not be written before `give_up` ended.
    pub async fn append_patiently(
        &self,
        batch: Vec<NewRecord>,
        give_up: impl Future<Output = ()>,
    ) -> Result<Appended, JournalError> {
        let mut give_up = pin!(give_up);
        loop {
            match self.append(batch.clone()).await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "waiting for the journal");
                    if tokio::time::timeout(RETRY_PAUSE, give_up.as_mut()).await.is_ok() {
                        return Err(error);
                    }
                }
                appended => return appended,
            }
        }
    }

    /// Puts a batch in line that nobody waits for. While the store cannot be written it is kept, in memory, and written as soon as that is possible.
    ///
    /// # Errors
    /// If it cannot be taken at all: too much waits already, or the journal was closed.
    pub fn append_detached(&self, batch: Vec<NewRecord>) -> Result<(), JournalError> {
        self.send(batch, DuringOutage::Kept).map(drop)
    }

    /// Puts a batch in line, in the order of the calls. Dropping the answer does not cancel it.
    pub fn append_nowait(&self, batch: Vec<NewRecord>) -> PendingAppend {
        let state = match self.send(batch, DuringOutage::Refused) {
            Ok(answer) => Pending::Sent(answer),
            Err(error) => Pending::Refused(Some(error)),
        };
        PendingAppend { state }
    }

    /// As [`Journal::append`], for threads outside the async runtime.
    ///
    /// # Errors
    /// Why the whole batch was refused.
    pub fn append_blocking(&self, batch: Vec<NewRecord>) -> Result<Appended, JournalError> {
        self.append_nowait(batch).wait()
    }

    fn send(
        &self,
        batch: Vec<NewRecord>,
        during_outage: DuringOutage,
    ) -> Result<oneshot::Receiver<Result<Appended, JournalError>>, JournalError> {
        if batch.is_empty() {
            return Err(JournalError::invalid("a batch needs at least one record"));
        }
        let entries = batch.into_iter().map(Entry::prepare).collect::<Result<Vec<_>, _>>()?;
        let bytes: usize = entries.iter().map(|entry| entry.record.payload.len()).sum();
        let records = entries.len() as u64;
        self.inner.shared.reserve(records, bytes as u64)?;
        let (reply, answer) = oneshot::channel();
        if self.inner.commands.send(Command::Append(Batch { entries, bytes, during_outage, reply })).is_err() {
            self.inner.shared.taken(records, bytes as u64);
            return Err(JournalError::Closed);
        }
        Ok(answer)
    }

    /// Runs a read on the reader pool, over one state of the log that does not change meanwhile.
    ///
    /// # Errors
    /// What the closure returned, or `journal_closed`.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.inner.readers.read(read).await
    }

    /// As [`Journal::read`], for threads outside the async runtime.
    ///
    /// # Errors
    /// What the closure returned, or `journal_closed`.
    pub fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.inner.readers.read_blocking(read)
    }

    /// Whether reads succeed: what the last one came to, or what another one comes to if that failed.
    ///
    /// # Errors
    /// `storage_failed`, as the read that failed.
    pub async fn check_reads(&self) -> Result<(), JournalError> {
        match self.inner.readers.failure() {
            None => Ok(()),
            Some(_) => self.read(Reader::head).await.map(drop),
        }
    }

    /// Why the last read failed, if the operating system failed it.
    #[must_use]
    pub fn failed_read(&self) -> Option<JournalError> {
        self.inner.readers.failure()
    }

    /// The end of the log that is durable now.
    #[must_use]
    pub fn head(&self) -> Head {
        self.inner.shared.head()
    }

    /// The artifact store.
    #[must_use]
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.inner.artifacts
    }

    /// Removes artifacts that were not stored for `age` (two hours at least) and that no record, no derived table and not `named` names. Reads the whole log if there
    /// are any; blocks.
    ///
    /// # Errors
    /// If something could not be read; then nothing was removed.
    pub fn collect_artifacts(&self, age: Duration, named: &BTreeSet<Digest>) -> Result<Collected, JournalError> {
        collect(&self.inner.layout, age, named)
    }

    /// The key that checkpoints are signed with.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.inner.key.public()
    }

    /// The state root.
    #[must_use]
    pub fn root(&self) -> &PathBuf {
        &self.inner.layout.root
    }

    /// Whether new work may begin. It is refused while space is short, so that running work can still record its outcome,
    /// while the store cannot be written, and when it was found damaged.
    ///
    /// # Errors
    /// `disk_full`, `storage_failed`, `journal_damaged` or `journal_closed`.
    pub fn admission(&self) -> Result<(), JournalError> {
        if let Some(failure) = self.inner.shared.failure() {
            return Err(failure);
        }
        if self.inner.shared.has_ended() {
            return Err(JournalError::Closed);
        }
        if let Some(outage) = self.inner.shared.outage() {
            return Err(outage);
        }
        let path = &self.inner.layout.root;
        let free = free_bytes(path).map_err(|e| JournalError::file("inspect", path, e))?;
        // Folding the write-ahead log back may take as much again, and running work still has to record its outcomes.
        if free < self.inner.min_free_bytes + crate::writer::WAL_BYTES {
            return Err(JournalError::DiskFull { path: path.clone() });
        }
        Ok(())
    }

    /// What is wrong with the state, and what to do about it.
    #[must_use]
    pub fn health(&self) -> Vec<Finding> {
        let mut findings = self.warnings();
        findings.extend(state_health(&self.inner.layout.root));
        findings
    }

    /// Whether the state was restored from a backup and nobody said yet that its work may go on.
    #[must_use]
    pub fn restore_waits(&self) -> bool {
        self.inner.shared.opened.restore_waits
    }

    /// The last sign of life of whoever wrote before the journal was opened: its newest record, or what it signed when it closed the journal.
    #[must_use]
    pub fn last_alive_at(&self) -> Option<Timestamp> {
        self.inner.shared.opened.last_alive_at
    }

    /// What was noticed when the journal was opened, or fails beside committing, and does not keep it from working; quick to ask for.
    #[must_use]
    pub fn warnings(&self) -> Vec<Finding> {
        let opened = &self.inner.shared.opened;
        let path = self.inner.layout.database();
        let mut findings = Vec::new();
        // First, because some who ask show one alone: another key is how everything else could be made to look right.
        for restore in self.inner.unacknowledged.get().into_iter().flatten() {
            if !restore.replaced_key() && opened.restore_waits {
                continue;
            }
            let code = if restore.replaced_key() { "signing_key_replaced" } else { "restore_unacknowledged" };
            findings.push(Finding {
                code: code.to_owned(),
                severity: if restore.replaced_key() { Severity::Critical } else { Severity::Warning },
                message: format!("{} (record {}); nobody has acknowledged it", restore.describe(), restore.seq),
                hint: "if you restored a backup, check what happened after it, run `palyra journal accept-restore` and restart the daemon; otherwise \
                       the state root was tampered with"
                    .to_owned(),
                path: self.inner.layout.private_key(),
            });
        }
        for table in &opened.changed_tables {
            findings.push(Finding {
                code: "table_changed".to_owned(),
                severity: Severity::Critical,
                message: format!("something other than the journal changed its table `{table}`"),
                hint: "run `palyra journal verify`, and restore a backup if the change was not intended".to_owned(),
                path: path.clone(),
            });
        }
        for (task, reason) in self.inner.shared.failed_upkeep() {
            findings.push(Finding {
                code: "journal_upkeep_failed".to_owned(),
                severity: Severity::Warning,
                message: format!("{}: {reason}", task.failing()),
                hint: "records are still durable; check the disk and the permissions of the state root".to_owned(),
                path: path.clone(),
            });
        }
        if opened.restore_waits {
            findings.push(Finding {
                code: "restore_waits".to_owned(),
                severity: Severity::Warning,
                message: "this state was restored from a backup; work that was in progress waits".to_owned(),
                hint: "check what happened after the backup, then run `palyra journal accept-restore` and restart the daemon"
                    .to_owned(),
                path: self.inner.layout.restored_note(),
            });
        }
        if opened.quarantined > 0 {
            findings.push(Finding {
                code: "records_quarantined".to_owned(),
                severity: Severity::Warning,
                message: format!("{} records of the log are missing from derived tables", opened.quarantined),
                hint: "run `palyra journal verify` to see which, and report them".to_owned(),
                path,
            });
        }
        findings
    }

    /// Signs the present head and keeps it for ever.
    ///
    /// # Errors
    /// If it could not be stored.
    pub async fn checkpoint(&self) -> Result<SignedCheckpoint, JournalError> {
        let (reply, answer) = oneshot::channel();
        self.inner.commands.send(Command::Checkpoint { reply }).map_err(|_| JournalError::Closed)?;
        answer.await.unwrap_or(Err(JournalError::Closed))
    }

    /// A proof that a record is in the log under the present signed head.
    ///
    /// # Errors
    /// `record_not_found`, or what reading failed with.
    pub async fn prove(&self, seq: u64) -> Result<InclusionProof, JournalError> {
        let (reply, answer) = oneshot::channel();
        self.inner.commands.send(Command::Sign { reply }).map_err(|_| JournalError::Closed)?;
        let signed = answer.await.map_err(|_| JournalError::Closed)?;
        self.read(move |reader| reader.prove_under(seq, signed)).await
    }

    /// Copies the whole state to an empty directory while the journal goes on. `outside` names what lies elsewhere and belongs to the state, so that the copy says
    /// that it does not have it.
    ///
    /// # Errors
    /// `would_overwrite` if something is there, or what copying failed with.
    pub async fn backup(&self, dest: PathBuf, outside: Vec<String>) -> Result<backup::BackupReport, JournalError> {
        let (reply, answer) = oneshot::channel();
        let inner = &self.inner;
        let (layout, key, clock) = (inner.layout.clone(), Arc::clone(&inner.key), Arc::clone(&inner.clock));
        let thread = std::thread::Builder::new()
            .name("journal-backup".to_owned())
            .spawn(move || drop(reply.send(backup::backup(&layout, &key, clock.as_ref(), &dest, outside))))
            .map_err(|e| JournalError::file("start a backup of", &self.inner.layout.root, e))?;
        let result = answer.await.unwrap_or(Err(JournalError::Closed));
        let _ = thread.join();
        result
    }

    /// Writes what was accepted, signs the head, folds the write-ahead log back and ends the threads.
    ///
    /// # Errors
    /// If that could not be done in good order; nothing acknowledged is lost even then.
    pub async fn close(self) -> Result<(), JournalError> {
        let (reply, answer) = oneshot::channel();
        self.inner.commands.send(Command::Close { reply }).map_err(|_| JournalError::Closed)?;
        answer.await.unwrap_or(Err(JournalError::Closed))
    }

    /// As [`Journal::close`], for threads outside the async runtime.
    ///
    /// # Errors
    /// As for [`Journal::close`].
    pub fn close_blocking(self) -> Result<(), JournalError> {
        let (reply, answer) = oneshot::channel();
        self.inner.commands.send(Command::Close { reply }).map_err(|_| JournalError::Closed)?;
        block_on(answer).unwrap_or(Err(JournalError::Closed))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.readers.close();
        let (reply, _) = oneshot::channel();
        let _ = self.commands.send(Command::Close { reply });
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = writer.join();
        }
    }
}
