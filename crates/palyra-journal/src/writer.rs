//! The writer thread: it alone writes the database, and many callers share one commit.
//!
//! A group is everything that waits when the thread looks, up to a limit. It is written in one transaction with one wait for
//! the disk, then all callers are answered. If a batch in the group is at fault, the group is written again with each batch in
//! a savepoint, so that only the batch at fault is refused; if the store is at fault, each batch gets a transaction of its
//! own, so that what fits is accepted. The hot path pays for neither.
//!
//! Between groups the thread folds the write-ahead log back, registers sealed segments and trims what they hold. Folding is done here and
//! not beside the writer, because the log starts over only when a fold has caught up with it; a log that starts over stays short, and
//! syncing a file that no longer grows takes half the time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::anchor::Anchors;
use crate::checkpoint::{self, SignedCheckpoint};
use crate::commit::{Batch, Committer, DuringOutage};
use crate::convert::to_sql;
use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::lock::WriterLock;
use crate::maintenance::{self, Maintenance, Task};
use crate::merkle::CHUNK;
use crate::options::JournalOptions;
use crate::segments::{self, SegmentRow};
use crate::shared::{Shared, Upkeep};
use crate::wal;

/// Records in one group; bounds how long the first caller of a group waits for the last.
const GROUP_RECORDS: usize = 4096;
/// Bytes in one group, for the same reason.
const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// Callers answered by one commit usually come back at once, one after the other. As long as they keep coming, the group waits
/// for the next; otherwise small and large groups would alternate. A lone caller is never made to wait.
const GATHER_PAUSE: Duration = Duration::from_micros(40);
/// All that waiting together, well below the time of a commit and the work on a full group.
const GATHER: Duration = Duration::from_micros(500);
/// How long the writer waits for the next command before it gives back what its connection has cached.
const IDLE: Duration = Duration::from_secs(5);
/// How long the writer looks out for the next command before it sleeps.
const LOOK_OUT: Duration = Duration::from_micros(50);
/// The same after it has served a lone caller: longer than that one takes to be woken, to work and to come back. With many callers the processor
/// has better things to do.
const LOOK_OUT_FOR_ONE: Duration = Duration::from_micros(200);
/// While the store cannot be written, it is tried again this often, also when nobody appends anything.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// Rows trimmed at a time, a few milliseconds of work.
const TRIM_ROWS: u64 = 512;
/// Under constant load a trim is done after this many commits.
const TRIM_EVERY_COMMITS: u64 = 16;
/// Written bytes after which the write-ahead log is folded back.
pub(crate) const WAL_BYTES: u64 = 8 * 1024 * 1024;

/// Length of the log that is made in advance: [`WAL_BYTES`] are an estimate of what is written, so there is some to spare.
const WAL_ROOM: u64 = 10 * 1024 * 1024;

/// What the writer can be asked.
#[derive(Debug)]
pub(crate) enum Command {
    Append(Batch),
    /// A signed statement about what is committed, for whoever asked.
    Sign {
        reply: oneshot::Sender<SignedCheckpoint>,
    },
    Checkpoint {
        reply: oneshot::Sender<Result<SignedCheckpoint, JournalError>>,
    },
    Sealed(Result<Option<SegmentRow>, JournalError>),
    Close {
        reply: oneshot::Sender<Result<(), JournalError>>,
    },
}

/// The state of the writer thread.
pub(crate) struct Writer {
    commands: Receiver<Command>,
    committer: Committer,
    anchor: Anchors,
    options: JournalOptions,
    shared: Arc<Shared>,
    maintenance: Maintenance,
    sealed_through: u64,
    trimmed_through: u64,
    sealing: Sealing,
    commits_since_trim: u64,
    bytes_since_fold: u64,
    last_group: usize,
    /// Batches that nobody waits for and that the store could not take, in their order.
    kept: VecDeque<Batch>,
    _lock: WriterLock,
}

#[derive(Debug, PartialEq, Eq)]
enum Sealing {
    Idle,
    Running,
    /// The last attempt failed; the log goes on in the live table, and the next attempt waits until it has grown.
    WaitUntil(u64),
}

/// What the writer takes over from opening.
pub(crate) struct Parts {
    pub(crate) committer: Committer,
    pub(crate) anchor: Anchors,
    pub(crate) options: JournalOptions,
    pub(crate) shared: Arc<Shared>,
    pub(crate) lock: WriterLock,
    pub(crate) sealed_through: u64,
}

impl Writer {
    pub(crate) fn new(parts: Parts, commands: Receiver<Command>, own: Sender<Command>) -> Result<Self, JournalError> {
        let maintenance = maintenance::start(&parts.options, own)?;
        Ok(Self {
            commands,
            committer: parts.committer,
            anchor: parts.anchor,
            options: parts.options,
            shared: parts.shared,
            maintenance,
            sealed_through: parts.sealed_through,
            trimmed_through: 0,
            sealing: Sealing::Idle,
            commits_since_trim: 0,
            bytes_since_fold: 0,
            last_group: 0,
            kept: VecDeque::new(),
            _lock: parts.lock,
        })
    }

    /// Serves until told to close or until nobody can ask any more.
    pub(crate) fn run(mut self) {
        let log = Layout::new(self.options.root.clone()).write_ahead_log();
        if let Err(error) = wal::make_room(&log, WAL_ROOM) {
            tracing::warn!(%error, "could not preallocate the write-ahead log; commits are slower until it has grown");
        }
        let mut closing = None;
        while closing.is_none() {
            let command = if self.shared.outage().is_some() {
                match self.commands.recv_timeout(PROBE_EVERY) {
                    Err(RecvTimeoutError::Timeout) => {
                        self.probe();
                        continue;
                    }
                    command => command.ok(),
                }
            } else if self.trimmed_through < self.sealed_through {
                // Trimming fills the time in which nobody asks for anything.
                match self.commands.try_recv() {
                    Err(TryRecvError::Empty) => {
                        self.trim();
                        continue;
                    }
                    command => command.ok(),
                }
            } else {
                self.next_command()
            };
            let mut next = command;
            if next.is_none() {
                break;
            }
            while let Some(command) = next.take() {
                match command {
                    Command::Append(batch) => next = self.group(batch),
                    Command::Sign { reply } => {
                        let _ = reply.send(self.committer.sign());
                    }
                    Command::Checkpoint { reply } => {
                        let _ = reply.send(self.checkpoint());
                    }
                    Command::Sealed(result) => self.sealed(result),
                    Command::Close { reply } => closing = Some(reply),
                }
            }
            self.housekeep();
        }
        let result = self.finish();
        if let Err(error) = &result {
            tracing::warn!(%error, "the journal was not closed cleanly");
        }
        // The lock goes first: whoever waits for the answer may open the state at once.
        drop(self);
        if let Some(reply) = closing {
            let _ = reply.send(result);
        }
    }

    /// Waits for the next command. A caller that was just answered often comes back at once, and waking a sleeping thread takes longer than
    /// looking out for it for a moment.
    fn next_command(&self) -> Option<Command> {
        let began = Instant::now();
        let look_out = if self.last_group == 1 { LOOK_OUT_FOR_ONE } else { LOOK_OUT };
        while self.last_group > 0 && began.elapsed() < look_out {
            match self.commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::thread::yield_now(),
            }
        }
        match self.commands.recv_timeout(IDLE) {
            Err(RecvTimeoutError::Timeout) => {}
            command => return command.ok(),
        }
        db::release_cache(self.committer.connection());
        self.commands.recv().ok()
    }

    /// Gathers a group around a batch and commits it; returns the command that ended the gathering, if one did.
    fn group(&mut self, first: Batch) -> Option<Command> {
        let mut records = first.entries.len();
        let mut bytes = first.bytes;
        let mut group = vec![first];
        let mut left_over = None;
        let began = Instant::now();
        let mut arrived = began;
        while records < GROUP_RECORDS && bytes < GROUP_BYTES {
            match self.commands.try_recv() {
                Ok(Command::Append(batch)) => {
                    records += batch.entries.len();
                    bytes += batch.bytes;
                    group.push(batch);
                    arrived = Instant::now();
                }
                Ok(other) => {
                    left_over = Some(other);
                    break;
                }
                Err(TryRecvError::Empty)
                    if self.last_group > 1 && arrived.elapsed() < GATHER_PAUSE && began.elapsed() < GATHER =>
                {
                    std::thread::yield_now();
                }
                Err(_) => break,
            }
        }
        self.last_group = group.len();
        self.commit(group);
        left_over
    }

    /// Commits a group and answers its callers.
    fn commit(&mut self, mut group: Vec<Batch>) {
        let records: usize = group.iter().map(|batch| batch.entries.len()).sum();
        let bytes: usize = group.iter().map(|batch| batch.bytes).sum();
        self.shared.taken(records as u64, bytes as u64);
        self.bytes_since_fold += bytes as u64 + records as u64 * 512 + 16 * 1024;
        let before = self.committer.head();
        let outcomes = self.committer.commit(&mut group);
        let head = self.committer.head();
        if head != before {
            self.shared.set_head(head);
        }
        let refused = outcomes.iter().find_map(|outcome| outcome.as_ref().err().filter(|error| error.is_transient()));
        match refused {
            Some(error) => self.shared.begin_outage(error),
            None => self.shared.end_outage(),
        }
        for (batch, outcome) in group.into_iter().zip(outcomes) {
            if let Err(error) = &outcome {
                self.shared.note_failure(error);
                if matches!(error, JournalError::DiskFull { .. }) {
                    // Folding may need no new room in the database and lets the log start over.
                    self.bytes_since_fold = WAL_BYTES;
                }
                if batch.during_outage == DuringOutage::Kept && error.is_transient() {
                    self.shared.waits_again(batch.entries.len() as u64, batch.bytes as u64);
                    self.kept.push_back(batch);
                    continue;
                }
            }
            if let (Err(error), DuringOutage::Kept) = (&outcome, batch.during_outage) {
                tracing::error!(%error, records = batch.entries.len(), "records that nobody waits for were refused");
            }
            let _ = batch.reply.send(outcome);
        }
        if head != before {
            self.write_anchor();
        }
        self.commits_since_trim += 1;
    }

    /// Commits what was kept while the store could not be written, as long as it can be now.
    fn commit_kept(&mut self) {
        while !self.kept.is_empty() && self.shared.outage().is_none() {
            let group = self.kept.drain(..self.kept.len().min(GROUP_RECORDS)).collect();
            self.commit(group);
        }
    }

    /// Tries whether the store can be written again.
    fn probe(&mut self) {
        match self.committer.probe() {
            Ok(()) => {
                let head = self.committer.head();
                if head != self.shared.head() {
                    self.shared.set_head(head);
                }
                self.write_anchor();
                self.shared.end_outage();
                self.commit_kept();
            }
            Err(error) => {
                self.shared.note_failure(&error);
                if matches!(error, JournalError::DiskFull { .. }) {
                    // Folding may need no new room in the database and lets the log start over.
                    self.fold_wal();
                }
            }
        }
    }

    /// Signs the head while the callers wake up. Not fatal when it fails: an older anchor only makes a later rollback harder to see.
    fn write_anchor(&mut self) {
        let written = self.anchor.write(&self.committer.sign());
        if let Err(error) = &written {
            tracing::warn!(%error, "the anchor could not be written");
        }
        self.shared.note_upkeep(Upkeep::Anchor, written.map_err(|error| error.to_string()));
    }

    fn checkpoint(&mut self) -> Result<SignedCheckpoint, JournalError> {
        let kept = self.committer.keep_checkpoint()?;
        let path = self.options.root.join("journal/anchor");
        self.anchor.write(&kept).and_then(|()| self.anchor.sync()).map_err(|e| JournalError::file("write", path, e))?;
        Ok(kept)
    }

    /// What is done between groups, never while a caller waits for its commit.
    fn housekeep(&mut self) {
        self.commit_kept();
        if self.bytes_since_fold >= WAL_BYTES {
            self.bytes_since_fold = 0;
            self.fold_wal();
        }
        self.start_sealing();
        if self.trimmed_through < self.sealed_through && self.commits_since_trim >= TRIM_EVERY_COMMITS {
            self.trim();
        }
    }

    /// Asks for a segment when the live table has grown past its limit. Segments end at chunk boundaries, so the hashes that
    /// are needed at start-up are always in the live table.
    fn start_sealing(&mut self) {
        let count = self.committer.head().count;
        let limit = self.options.segment_records.max(CHUNK);
        let ready = match self.sealing {
            Sealing::Idle => true,
            Sealing::Running => false,
            Sealing::WaitUntil(later) => count >= later,
        };
        if !ready || count - self.sealed_through <= limit {
            return;
        }
        let length = (limit / 2 / CHUNK).max(1) * CHUNK;
        let range = (self.sealed_through + 1, self.sealed_through + length);
        if range.1 < count {
            self.sealing = Sealing::Running;
            self.maintenance.ask(Task::Seal { first: range.0, last: range.1 });
        }
    }

    fn sealed(&mut self, result: Result<Option<SegmentRow>, JournalError>) {
        self.sealing = Sealing::Idle;
        let registered = match result {
            Ok(None) => return,
            Ok(Some(segment)) => self
                .committer
                .change_tables(|connection| segments::register(connection, &segment))
                .map(|()| self.sealed_through = segment.last_seq),
            Err(error) => Err(error),
        };
        self.shared.note_upkeep(Upkeep::Seal, registered.as_ref().copied().map_err(ToString::to_string));
        if let Err(error) = registered {
            tracing::error!(%error, "records could not be moved into a segment");
            self.shared.note_failure(&error);
            self.sealing = Sealing::WaitUntil(self.committer.head().count + CHUNK);
        }
    }

    /// Removes a few rows that a segment holds.
    fn trim(&mut self) {
        self.commits_since_trim = 0;
        let sealed = to_sql(self.sealed_through);
        let deleted = self.committer.change_tables(|connection| {
            let mut statement = connection.prepare_cached(
                "DELETE FROM records WHERE seq IN (SELECT seq FROM records WHERE seq <= ?1 ORDER BY seq LIMIT ?2)",
            )?;
            Ok(statement.execute((sealed, to_sql(TRIM_ROWS)))?)
        });
        match deleted {
            Ok(rows) => {
                self.shared.note_upkeep(Upkeep::Trim, Ok(()));
                self.bytes_since_fold += rows as u64 * 512;
                if (rows as u64) < TRIM_ROWS {
                    self.trimmed_through = self.sealed_through;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "sealed rows could not be trimmed; they are left until the next start");
                self.shared.note_upkeep(Upkeep::Trim, Err(error.to_string()));
                self.shared.note_failure(&error);
                self.trimmed_through = self.sealed_through;
            }
        }
    }

    /// Copies the write-ahead log into the database, a few milliseconds for [`WAL_BYTES`]. Readers of an old state are not waited for; what they
    /// still need is folded back the next time.
    fn fold_wal(&mut self) {
        let connection = self.committer.connection();
        let folded = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = &folded {
            tracing::warn!(%error, "the write-ahead log could not be checkpointed");
            // Not only after as much again: a log that cannot be folded back is what fills a disk.
            self.bytes_since_fold = WAL_BYTES / 2;
        }
        self.shared.note_upkeep(Upkeep::Fold, folded.map_err(|error| error.to_string()));
    }

    /// Closes the database in good order.
    fn finish(&mut self) -> Result<(), JournalError> {
        self.maintenance.stop();
        self.commit_kept();
        if !self.kept.is_empty() {
            tracing::error!(
                batches = self.kept.len(),
                "records that nobody waits for could not be written before the journal was closed"
            );
        }
        // What was appended before closing is committed; what came after is refused when the channel goes.
        self.checkpoint()?;
        let connection = self.committer.connection();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        checkpoint::read_head(connection, self.committer.id())?;
        if let Err(error) = self.committer.note_closed() {
            tracing::warn!(%error, "the next start reads all derived tables");
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.end();
    }
}
