//! One transaction of the writer: records, chain, seals, projections and checkpoints change together or not at all.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use palyra_common::{Digest, RunId};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::artifacts::ArtifactStore;
use crate::chain::Chain;
use crate::checkpoint::{self, JournalId, SignedCheckpoint};
use crate::db;
use crate::error::{Blame, JournalError};
use crate::journal::Appended;
use crate::keys::JournalKey;
use crate::layout::{Layout, free_bytes};
use crate::options::JournalOptions;
use crate::projection::Projection;
use crate::record::{Entry, Head, hash_of};
use crate::row;
use crate::run_heads::{RunHeads, last_run_seq};

/// Runs whose last number is remembered; beyond that the database is asked again.
const REMEMBERED_RUNS: usize = 16 * 1024;
/// An input/output error with less free space than this is taken for a full disk.
const NEARLY_FULL: u64 = 256 * 1024;

/// Records that are appended together or not at all, and who waits for them.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: usize,
    pub(crate) reply: oneshot::Sender<Result<Appended, JournalError>>,
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
}

impl Committer {
    pub(crate) fn new(
        connection: Connection,
        chain: Chain,
        key: Arc<JournalKey>,
        options: JournalOptions,
        projections: Vec<Arc<dyn Projection>>,
    ) -> Self {
        let layout = Layout::new(options.root.clone());
        let artifacts = ArtifactStore::new(layout.artifacts_dir());
        let run_heads = HashMap::new();
        Self { connection, chain, key, artifacts, layout, options, projections, run_heads, commits: 0 }
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
        match self.transaction(group, Isolation::None) {
            Ok(outcomes) => outcomes,
            Err(error) if group.len() == 1 => vec![Err(error)],
            Err(error) if error.blame() == Blame::Batch => match self.transaction(group, Isolation::PerBatch) {
                Ok(outcomes) => outcomes,
                Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
            },
            Err(_) => group.iter_mut().map(|batch| self.commit_alone(batch)).collect(),
        }
    }

    fn commit_alone(&mut self, batch: &mut Batch) -> Result<Appended, JournalError> {
        let outcomes = self.transaction(std::slice::from_mut(batch), Isolation::None)?;
        outcomes.into_iter().next().unwrap_or(Err(JournalError::Closed))
    }

    /// Writes a group in one transaction. An error means that nothing of it was written.
    fn transaction(
        &mut self,
        group: &mut [Batch],
        isolation: Isolation,
    ) -> Result<Vec<Result<Appended, JournalError>>, JournalError> {
        let before = self.chain.clone();
        let written = self.try_transaction(group, isolation);
        match written {
            Ok(outcomes) => Ok(outcomes),
            Err(error) => {
                self.chain = before;
                self.run_heads.clear();
                self.roll_back();
                Err(self.explain(error))
            }
        }
    }

    fn try_transaction(
        &mut self,
        group: &mut [Batch],
        isolation: Isolation,
    ) -> Result<Vec<Result<Appended, JournalError>>, JournalError> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut outcomes = Vec::with_capacity(group.len());
        for batch in group {
            let outcome = match isolation {
                Isolation::None => Ok(self.write(batch)?),
                Isolation::PerBatch => self.write_isolated(batch)?,
            };
            outcomes.push(outcome);
        }
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
        Ok(outcomes)
    }

    /// Writes a batch such that its own failure leaves the rest of the group alone.
    fn write_isolated(&mut self, batch: &mut Batch) -> Result<Result<Appended, JournalError>, JournalError> {
        let before = self.chain.clone();
        self.connection.execute_batch("SAVEPOINT batch")?;
        match self.write(batch) {
            Ok(appended) => {
                self.connection.execute_batch("RELEASE batch")?;
                Ok(Ok(appended))
            }
            Err(error) if error.blame() == Blame::Batch => {
                self.connection.execute_batch("ROLLBACK TO batch; RELEASE batch")?;
                self.chain = before;
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
                db::open_sealed(&self.layout.segment(&segment.file)).map(Rc::new)
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
        let result = self.connection.unchecked_transaction().and_then(|transaction| {
            checkpoint::keep(&transaction, &signed)?;
            checkpoint::write_head(&transaction, &signed)?;
            transaction.commit()
        });
        result.map_err(|e| self.explain(e.into()))?;
        Ok(signed)
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

/// Whether a batch that is at fault takes its group with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    None,
    PerBatch,
}
