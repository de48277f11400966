//! What signed statements say the log must be at certain counts.
//!
//! A hash chain alone can be recomputed by whoever changed it; a statement signed with the key cannot. When a statement fails, the
//! change lies between it and the last one that held.

use std::fmt;

use palyra_common::Digest;

use super::report::VerifyReport;
use crate::checkpoint::{JournalId, SignedCheckpoint};
use crate::keys::PublicKey;
use crate::position::Position;

/// Where a statement comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Head,
    Anchor,
    External,
    Checkpoint,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "the signed head",
            Self::Anchor => "the anchor",
            Self::External => "the given anchor",
            Self::Checkpoint => "the checkpoint",
        })
    }
}

impl Statement {
    fn code(self) -> &'static str {
        match self {
            Self::Head => "head_refuted",
            Self::Anchor | Self::External => "anchor_refuted",
            Self::Checkpoint => "checkpoint_refuted",
        }
    }
}

/// The statements outside the table of checkpoints, and what they are checked with.
#[derive(Debug)]
pub(super) struct Expectations {
    keys: Vec<PublicKey>,
    id: Option<JournalId>,
    pending: Vec<(Statement, SignedCheckpoint)>,
    signed_through: Option<u64>,
    last_count: u64,
    held_through: u64,
}

impl Expectations {
    pub(super) fn new(keys: Vec<PublicKey>, id: Option<JournalId>) -> Self {
        Self { keys, id, pending: Vec::new(), signed_through: None, last_count: 0, held_through: 0 }
    }

    pub(super) fn id(&self) -> Option<JournalId> {
        self.id
    }

    /// The largest count that any statement speaks of.
    pub(super) fn last_count(&self) -> u64 {
        self.last_count
    }

    /// The largest count that this state itself has a genuine statement about.
    pub(super) fn signed_through(&self) -> Option<u64> {
        self.signed_through
    }

    /// Takes a statement, unless it is not genuine.
    pub(super) fn add(&mut self, source: Statement, checkpoint: SignedCheckpoint, report: &mut VerifyReport) {
        if !self.genuine(source, &checkpoint, report) {
            return;
        }
        if source != Statement::External {
            self.signed_through = self.signed_through.max(Some(checkpoint.count));
        }
        self.last_count = self.last_count.max(checkpoint.count);
        self.pending.push((source, checkpoint));
    }

    fn genuine(&self, source: Statement, checkpoint: &SignedCheckpoint, report: &mut VerifyReport) -> bool {
        let position = Position::Checkpoint { count: checkpoint.count };
        if self.id.is_some_and(|id| id != checkpoint.journal_id) {
            report.problem(position, source.code(), format!("{source} belongs to another journal"));
            return false;
        }
        if !checkpoint.signed_by(&self.keys) {
            report.problem(position, source.code(), format!("{source} was not signed with a key of this journal"));
            return false;
        }
        true
    }

    /// Checks all statements about this count, and returns who signed them. Without a root, earlier damage has already been reported.
    pub(super) fn reach(
        &mut self,
        count: u64,
        hash: Option<Digest>,
        root: Option<Digest>,
        report: &mut VerifyReport,
    ) -> Vec<Digest> {
        let mut signers = Vec::new();
        let mut at = 0;
        while let Some((source, checkpoint)) = self.pending.get(at).cloned() {
            if checkpoint.count == count {
                self.pending.swap_remove(at);
                self.compare(source, &checkpoint, hash, root, report);
                signers.push(checkpoint.key_id);
            } else {
                at += 1;
            }
        }
        signers
    }

    /// Whether any statement speaks of this count; computing a root is not free.
    pub(super) fn speaks_of(&self, count: u64) -> bool {
        self.pending.iter().any(|(_, checkpoint)| checkpoint.count == count)
    }

    /// Checks a row of the table of checkpoints; whether it is genuine.
    pub(super) fn check_row(
        &mut self,
        checkpoint: &SignedCheckpoint,
        hash: Option<Digest>,
        root: Option<Digest>,
        report: &mut VerifyReport,
    ) -> bool {
        let genuine = self.genuine(Statement::Checkpoint, checkpoint, report);
        if genuine {
            self.compare(Statement::Checkpoint, checkpoint, hash, root, report);
            report.checkpoints += 1;
        }
        genuine
    }

    fn compare(
        &mut self,
        source: Statement,
        checkpoint: &SignedCheckpoint,
        hash: Option<Digest>,
        root: Option<Digest>,
        report: &mut VerifyReport,
    ) {
        let count = checkpoint.count;
        let other_hash = hash.is_some_and(|hash| hash != checkpoint.head);
        let other_root = root.is_some_and(|root| root != checkpoint.merkle_root);
        if !other_hash && !other_root {
            if hash.is_some() && root.is_some() {
                self.held_through = self.held_through.max(count);
            }
            return;
        }
        let position = if count == 0 {
            Position::Checkpoint { count }
        } else if other_root {
            Position::Records { first: (self.held_through + 1).min(count), last: count }
        } else {
            Position::Record { seq: count }
        };
        report.problem(position, source.code(), format!("{source} at {count} does not match: records were modified"));
    }

    /// The log ended; whatever statements are left speak of records that are not there.
    pub(super) fn end(&mut self, count: u64, report: &mut VerifyReport) {
        for (source, checkpoint) in std::mem::take(&mut self.pending) {
            let position = Position::Records { first: count + 1, last: checkpoint.count };
            let message = format!(
                "{source} covers {} records, but only {count} exist: the journal was truncated or replaced with an older copy",
                checkpoint.count
            );
            report.problem(position, "records_missing", message);
        }
    }
}
