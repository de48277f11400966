//! One transaction of the writer: records, chain, seals, projections and checkpoints change together or not at all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{Digest, RunId};
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::oneshot;

use crate::artifacts::ArtifactStore;
use crate::chain::Chain;
use crate::checkpoint::{self, JournalId, SignedCheckpoint};
use crate::convert::to_u64;
use crate::db;
use crate::error::{Blame, JournalError};
use crate::journal::Appended;
use crate::keys::JournalKey;
use crate::layout::{Layout, free_bytes};
use crate::options::JournalOptions;
use crate::position::Position;
use crate::projection::Projection;
use crate::record::{Entry, Head, hash_of};
use crate::row;
use crate::run_heads::{RunHeads, last_number, last_run_seq};
use crate::table_digests::{Snapshot, TableDigests};
use crate::tables;

/// Pauses between attempts to write a group that the operating system failed. Most disturbances of a disk are over in less; what takes longer is
/// reported to the callers.
const RETRY_PAUSES: [Duration; 7] = [
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];
/// Runs whose last number is remembered; beyond that the database is asked again.
const REMEMBERED_RUNS: usize = 16 * 1024;
/// An input/output error with less free space than this is taken for a full disk.
const NEARLY_FULL: u64 = 256 * 1024;

/// Records that are appended together or not at all, and who waits for them.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: usize,
    pub(crate) during_outage: DuringOutage,
    pub(crate) reply: oneshot::Sender<Result<Appended, JournalError>>,
}

/// What becomes of a batch that the store cannot take now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DuringOutage {
    /// It is refused, and whoever appended it decides.
    Refused,
    /// It is kept and written as soon as the store can be written again.
    Kept,
}

/// The writing half of a journal.
pub(crate) struct Committer {
    connection: Connection,
    chain: Chain,
    key: Arc<JournalKey>,
    artifacts: ArtifactStore,
    layout: Layout,
    options: JournalOptions,
    projections: Vec<Arc<dyn Projection>>,
    run_heads: HashMap<RunId, u64>,
    commits: u64,
    /// The end of the log that a failed commit would have left, if it could not be found out yet whether it did.
    unsettled: Option<Attempt>,
    /// How many groups there were, which tells whose an attempt was.
    groups: u64,
    digests: TableDigests,
    /// Whether the last transaction failed in the store. Callers that come meanwhile are answered after one attempt.
    failing: bool,
}

impl Committer {
    pub(crate) fn new(
        connection: Connection,
        chain: Chain,
        key: Arc<JournalKey>,
        options: JournalOptions,
        projections: Vec<Arc<dyn Projection>>,
        digests: TableDigests,
    ) -> Self {
        let layout = Layout::new(options.root.clone());
        let artifacts = ArtifactStore::new(layout.artifacts_dir());
        let run_heads = HashMap::new();
        Self {
            connection,
            chain,
            key,
            artifacts,
            layout,
            options,
            projections,
            run_heads,
            commits: 0,
            unsettled: None,
            groups: 0,
            digests,
            failing: false,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn head(&self) -> Head {
        self.chain.head
    }

    pub(crate) fn id(&self) -> JournalId {
        self.chain.id
    }

    /// A signed statement about what is committed.
    pub(crate) fn sign(&self) -> SignedCheckpoint {
        self.chain.sign(&self.key, self.options.clock.as_ref())
    }

    /// Commits a group and says for each batch what became of it.
    pub(crate) fn commit(&mut self, group: &mut [Batch]) -> Vec<Result<Appended, JournalError>> {
        self.groups += 1;
        match self.persistently(group, Isolation::None) {
            Ok(outcomes) => outcomes,
            Err(error) if group.len() == 1 => vec![Err(error)],
            Err(error) if error.blame() == Blame::Batch => match self.persistently(group, Isolation::PerBatch) {
                Ok(outcomes) => outcomes,
                Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
            },
            Err(_) => match self.settle() {
                Ok(Settled::Committed(attempt)) if attempt.group == self.groups => attempt.outcomes,
                Ok(_) => group.iter_mut().map(|batch| self.commit_alone(batch)).collect(),
                Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
            },
        }
    }

    fn commit_alone(&mut self, batch: &mut Batch) -> Result<Appended, JournalError> {
        self.settle()?;
        let outcomes = self.transaction(std::slice::from_mut(batch), Isolation::None)?;
        outcomes.into_iter().next().unwrap_or(Err(JournalError::Closed))
    }

    /// Writes a group, again and again for a bounded time while the operating system fails it. Writing it again is safe, because a failed attempt is
    /// known to have left nothing behind ([`Self::settle`]). A full disk is reported at once: it does not pass by itself, and smaller batches may fit.
    fn persistently(
        &mut self,
        group: &mut [Batch],
        isolation: Isolation,
    ) -> Result<Vec<Result<Appended, JournalError>>, JournalError> {
        let pauses = if self.failing { &[][..] } else { &RETRY_PAUSES[..] };
        let mut written = self.settle().and_then(|_| self.transaction(group, isolation));
        for pause in pauses {
            match &written {
                Err(error) if error.is_transient() && !matches!(error, JournalError::DiskFull { .. }) => {
                    tracing::warn!(%error, "writing to the journal failed; trying again");
                }
                _ => break,
            }
            std::thread::sleep(*pause);
            written = match self.settle() {
                // The attempt before took place after all.
                Ok(Settled::Committed(attempt)) if attempt.group == self.groups => Ok(attempt.outcomes),
                Ok(_) => self.transaction(group, isolation),
                Err(error) => Err(error),
            };
        }
        self.failing = written.as_ref().is_err_and(|error| error.blame() == Blame::Store);
        written
    }

    /// Finds out whether a commit that reported a failure took place, by looking at the end of the log. Nothing is written before that is known.
    fn settle(&mut self) -> Result<Settled, JournalError> {
        let Some(attempted) = self.unsettled.take() else { return Ok(Settled::Nothing) };
        let found = self.last_in_database();
        match found {
            Ok(head) if head == self.chain.head => Ok(Settled::Nothing),
            Ok(head) if head == attempted.chain.head => {
                self.chain = attempted.chain.clone();
                self.digests.restore(&attempted.digests);
                Ok(Settled::Committed(attempted))
            }
            Ok(head) => {
                let position = Position::Record { seq: head.count };
                Err(JournalError::damaged(position, "the log changed while a commit failed"))
            }
            Err(error) => {
                self.unsettled = Some(attempted);
                Err(error)
            }
        }
    }

    fn last_in_database(&self) -> Result<Head, JournalError> {
        let last = self
            .connection
            .query_row("SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1", [], |row| {
                Ok(Head { count: to_u64(row.get(0)?), hash: Digest(row.get(1)?) })
            })
            .optional()?;
        Ok(last.unwrap_or(Head { count: 0, hash: self.chain.id.genesis() }))
    }

    /// Whether the store can be written, tried with a signed head, which may be replaced at any time.
    pub(crate) fn probe(&mut self) -> Result<(), JournalError> {
        self.settle()?;
        if let Some(faults) = &self.options.faults {
            faults
                .before_commit(self.commits + 1)
                .map_err(|e| JournalError::file("commit to", self.layout.database(), e))?;
        }
        let signed = self.sign();
        let written = self.connection.unchecked_transaction().and_then(|transaction| {
            checkpoint::write_head(&transaction, &signed)?;
            transaction.commit()
        });
        written.map_err(|e| self.explain(e.into()))?;
        self.failing = false;
        Ok(())
    }

    /// Writes a group in one transaction. An error means that nothing of it was written.
    fn transaction(
        &mut self,
        group: &mut [Batch],
        isolation: Isolation,
    ) -> Result<Vec<Result<Appended, JournalError>>, JournalError> {
        let before = self.chain.clone();
        let digests_before = self.digests.snapshot();
        let mut outcomes = Vec::with_capacity(group.len());
        let written = self.try_transaction(group, isolation, &mut outcomes);
        match written {
            Ok(()) => Ok(outcomes),
            Err(error) => {
                let chain = std::mem::replace(&mut self.chain, before);
                let attempted = Attempt { group: self.groups, chain, digests: self.digests.snapshot(), outcomes };
                self.digests.restore(&digests_before);
                self.run_heads.clear();
                self.roll_back();
                if error.blame() == Blame::Store {
                    self.unsettled = Some(attempted);
                    if let Ok(Settled::Committed(attempt)) = self.settle() {
                        return Ok(attempt.outcomes);
                    }
                }
                Err(self.explain(error))
            }
        }
    }

    fn try_transaction(
        &mut self,
        group: &mut [Batch],
        isolation: Isolation,
        outcomes: &mut Vec<Result<Appended, JournalError>>,
    ) -> Result<(), JournalError> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for batch in group {
            let outcome = match isolation {
                Isolation::None => Ok(self.write(batch)?),
                Isolation::PerBatch => self.write_isolated(batch)?,
            };
            outcomes.push(outcome);
        }
        self.digests.store(&self.connection, self.chain.id, self.chain.head)?;
        self.commits += 1;
        if let Some(faults) = &self.options.faults {
            faults
                .before_commit(self.commits)
                .map_err(|e| JournalError::file("commit to", self.layout.database(), e))?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        if let Some(faults) = &self.options.faults {
            faults.after_commit(self.commits);
        }
        Ok(())
    }

    /// Writes a batch such that its own failure leaves the rest of the group alone.
    fn write_isolated(&mut self, batch: &mut Batch) -> Result<Result<Appended, JournalError>, JournalError> {
        let (before, digests_before) = (self.chain.clone(), self.digests.snapshot());
        self.connection.execute_batch("SAVEPOINT batch")?;
        match self.write(batch) {
            Ok(appended) => {
                self.connection.execute_batch("RELEASE batch")?;
                Ok(Ok(appended))
            }
            Err(error) if error.blame() == Blame::Batch => {
                self.connection.execute_batch("ROLLBACK TO batch; RELEASE batch")?;
                self.chain = before;
                self.digests.restore(&digests_before);
                self.run_heads.clear();
                Ok(Err(error))
            }
            Err(error) => Err(error),
        }
    }

    fn write(&mut self, batch: &mut Batch) -> Result<Appended, JournalError> {
        let first_seq = self.chain.head.count + 1;
        let last_seq = self.chain.head.count + batch.entries.len() as u64;
        for entry in &mut batch.entries {
            self.check_run_seq(entry)?;
            entry.record.seq = self.chain.head.count + 1;
            entry.record.prev_hash = self.chain.head.hash;
            entry.record.hash = hash_of(&entry.record, &entry.payload_digest);
            let artifact = self.place_payload(entry)?;
            let end = Head { count: entry.record.seq, hash: entry.record.hash };
            let seal = (end.count == last_seq).then(|| self.key.seals().seal(self.chain.id, end));
            row::insert(&self.connection, &entry.record, artifact.as_ref(), seal)?;
            for projection in &self.projections {
                projection
                    .apply(&self.connection, &entry.record)
                    .map_err(|e| e.into_journal(projection.name(), entry.record.seq))?;
            }
            self.chain.push(&self.connection, entry.record.hash)?;
            if self.chain.head.count.is_multiple_of(self.options.checkpoint_every.max(1)) {
                let signed = self.sign();
                checkpoint::keep(&self.connection, &signed)?;
                checkpoint::write_head(&self.connection, &signed)?;
            }
        }
        Ok(Appended { first_seq, last_seq: self.chain.head.count, head: self.chain.head })
    }

    /// A tape is numbered without gaps, also across sealed segments, which no index of the live table covers.
    fn check_run_seq(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let (Some(run), Some(found)) = (entry.record.run_id, entry.record.run_seq) else { return Ok(()) };
        let last = match self.run_heads.get(&run) {
            Some(last) => *last,
            None if found == 1 && RunHeads::get(&self.connection, run)?.is_none() => 0,
            None => last_run_seq(&self.connection, run, |segment| {
                last_number(&db::open_sealed(&self.layout.segment(&segment.file))?, run)
            })?,
        };
        let expected = last + 1;
        if found != expected {
            return Err(JournalError::RunSequence { run, expected, found });
        }
        if self.run_heads.len() >= REMEMBERED_RUNS {
            self.run_heads.clear();
        }
        self.run_heads.insert(run, found);
        Ok(())
    }

    /// Large payloads become artifacts, durable before the row that names them.
    fn place_payload(&self, entry: &Entry) -> Result<Option<Digest>, JournalError> {
        if entry.record.payload.len() <= self.options.inline_payload_bytes {
            return Ok(None);
        }
        self.artifacts.put(&entry.record.payload).map(Some)
    }

    /// Keeps the present head as a checkpoint for ever.
    pub(crate) fn keep_checkpoint(&mut self) -> Result<SignedCheckpoint, JournalError> {
        let signed = self.sign();
        self.change_tables(|transaction| {
            checkpoint::keep(transaction, &signed)?;
            checkpoint::write_head(transaction, &signed)?;
            Ok(())
        })?;
        Ok(signed)
    }

    /// Changes tables of the journal itself, and their digests with them.
    pub(crate) fn change_tables<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.settle()?;
        let digests_before = self.digests.snapshot();
        let changed = (|| {
            let transaction = self.connection.unchecked_transaction()?;
            let changed = change(&transaction)?;
            self.digests.store(&transaction, self.chain.id, self.chain.head)?;
            transaction.commit()?;
            Ok(changed)
        })();
        changed.map_err(|error| {
            self.digests.restore(&digests_before);
            self.roll_back();
            self.explain(error)
        })
    }

    /// Notes that nothing is written any more; see [`tables`].
    pub(crate) fn note_closed(&self) -> std::io::Result<()> {
        tables::note_closed(&self.layout, &self.key)
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
    }

    /// Some file systems report a full disk as a plain input/output error.
    fn explain(&self, error: JournalError) -> JournalError {
        let io = matches!(&error, JournalError::Database(cause)
            if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure));
        if io && free_bytes(&self.layout.journal_dir()).is_ok_and(|free| free < NEARLY_FULL) {
            return JournalError::DiskFull { path: self.layout.journal_dir() };
        }
        error
    }
}

/// What a commit that reported a failure would have left.
struct Attempt {
    group: u64,
    chain: Chain,
    digests: Snapshot,
    outcomes: Vec<Result<Appended, JournalError>>,
}

/// What became of a commit that reported a failure.
enum Settled {
    /// It left nothing behind, or there was none.
    Nothing,
    /// It took place.
    Committed(Attempt),
}

/// Whether a batch that is at fault takes its group with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    None,
    PerBatch,
}
