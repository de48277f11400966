//! What can go wrong in the journal, and how it looks to the outside.
//!
//! INVARIANT: errors are cheap to clone, because one failed commit answers every caller that shared it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use palyra_common::{Digest, ErrorCategory, Retry, RunId, StableErrorEnvelope, ToStableError};
use rusqlite::ErrorCode;
use thiserror::Error;

use crate::position::Position;

/// A failure of the journal.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process writes this state.
    #[error("the state in `{root}` is in use by {holder}", root = root.display())]
    StateInUse {
        /// The state root.
        root: PathBuf,
        /// Who holds it, such as `process 4711`.
        holder: String,
    },
    /// The log cannot be trusted as it is; it was set aside or must be looked at first.
    #[error("the journal is damaged at {position}: {reason}")]
    Damaged {
        /// The first place where something is wrong.
        position: Position,
        /// What is wrong there.
        reason: String,
        /// Where the damaged file lies now.
        set_aside: Option<PathBuf>,
    },
    /// The database was written by a newer release.
    #[error("the journal has schema version {found}; this release supports versions up to {known}")]
    SchemaNewer {
        /// Version found in the file.
        found: i64,
        /// Newest version this release can read.
        known: i64,
    },
    /// The database was written by an older release and has not been opened for writing since.
    #[error("the journal has schema version {found}; this release reads version {known}")]
    SchemaOlder {
        /// Version found in the file.
        found: i64,
        /// Version this release reads.
        known: i64,
    },
    /// The file system has no room; nothing of the refused batch was written.
    #[error("no space left for the journal in `{path}`", path = path.display())]
    DiskFull {
        /// Where room is missing.
        path: PathBuf,
    },
    /// The database failed in a way that says nothing about its contents.
    #[error("the journal database failed: {0}")]
    Database(#[source] Arc<rusqlite::Error>),
    /// A file operation failed.
    #[error("cannot {action} `{path}`: {source}", path = path.display())]
    File {
        /// What was attempted, such as `read`.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// A record that may not be appended as it is.
    #[error("the record cannot be appended: {reason}")]
    InvalidRecord {
        /// What is wrong with it.
        reason: String,
    },
    /// A run's records must be numbered without gaps by its one driver.
    #[error("record {found} of run {run} is out of order; expected {expected}")]
    RunSequence {
        /// The run.
        run: RunId,
        /// The number that would be right.
        expected: u64,
        /// The number that was given.
        found: u64,
    },
    /// A projection would not take the record; the batch was refused whole.
    #[error("projection `{projection}` rejected record {seq}: {reason}")]
    ProjectionRefused {
        /// Which projection.
        projection: &'static str,
        /// The number the record would have had.
        seq: u64,
        /// What the projection said.
        reason: String,
    },
    /// More is waiting to be written than the journal is willing to hold in memory.
    #[error("the journal's queue is full ({waiting} records waiting)")]
    Busy {
        /// Records waiting.
        waiting: u64,
    },
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// A record that was committed right before the process died, and that nobody has signed since.
    #[error("record {seq} is not signed yet")]
    Unsigned {
        /// Its number.
        seq: u64,
    },
    /// No record has this number.
    #[error("there is no record {seq}; the journal has {count}")]
    NoSuchRecord {
        /// The number asked for.
        seq: u64,
        /// How many records there are.
        count: u64,
    },
    /// No artifact has this digest.
    #[error("there is no artifact `{digest}`")]
    NoSuchArtifact {
        /// The digest asked for.
        digest: Digest,
    },
    /// The bytes of an artifact are not those it was stored with.
    #[error("artifact `{digest}` was modified after it was stored")]
    ArtifactChanged {
        /// The digest it was stored under.
        digest: Digest,
    },
    /// The signing key is missing or cannot be used.
    #[error("the journal's signing key `{path}` cannot be used: {reason}", path = path.display())]
    Key {
        /// The key file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A file or directory is in the way.
    #[error("`{path}` already exists and will not be overwritten", path = path.display())]
    WouldOverwrite {
        /// What is in the way.
        path: PathBuf,
    },
    /// A backup that does not verify.
    #[error("the backup in `{path}` cannot be used: {reason}", path = path.display())]
    BadBackup {
        /// The backup.
        path: PathBuf,
        /// The first thing that is wrong with it.
        reason: String,
    },
    /// A proof that does not prove what it says.
    #[error("the proof is invalid: {reason}")]
    ProofRefuted {
        /// Which step failed.
        reason: String,
    },
    /// The file system of the state root takes no writes.
    #[error("the file system of the state root `{root}` is mounted read-only", root = root.display())]
    ReadOnly {
        /// The state root.
        root: PathBuf,
    },
    /// There is no restore to accept.
    #[error("the state in `{root}` has no restore that waits to be accepted", root = root.display())]
    NoRestore {
        /// The state root.
        root: PathBuf,
    },
    /// There is no damage whose loss could be accepted.
    #[error("there is no loss to accept: the journal in `{root}` is not marked as damaged", root = root.display())]
    NoLoss {
        /// The state root.
        root: PathBuf,
    },
    /// No journal was ever written here.
    #[error("there is no journal in `{root}`", root = root.display())]
    NoJournal {
        /// The state root.
        root: PathBuf,
    },
}

/// Whether one batch is at fault or the store itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    Batch,
    Store,
}

impl JournalError {
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return Self::DiskFull { path };
        }
        Self::File { action, path, source: Arc::new(source) }
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::InvalidRecord { reason: reason.into() }
    }

    pub(crate) fn damaged(position: Position, reason: impl Into<String>) -> Self {
        Self::Damaged { position, reason: reason.into(), set_aside: None }
    }

    /// Whether the same operation may succeed later although nothing about it changes: the operating system failed it (`EIO`, `EMFILE`, `EROFS`, a
    /// full disk), which says nothing about the contents. What SQLite refuses for any other reason it refuses again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::DiskFull { .. } | Self::Busy { .. } | Self::File { .. } => true,
            Self::Database(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    ErrorCode::SystemIoFailure
                        | ErrorCode::CannotOpen
                        | ErrorCode::ReadOnly
                        | ErrorCode::PermissionDenied
                        | ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::OutOfMemory
                        | ErrorCode::FileLockingProtocolFailed
                        // SQLite reports a read that failed with `EIO` as a damaged file; see `confirm_damage`.
                        | ErrorCode::DatabaseCorrupt
                        | ErrorCode::NotADatabase
                )
            ),
            _ => false,
        }
    }

    /// Whether SQLite says that the file is damaged, which may also be a read that failed.
    pub(crate) fn suspects_damage(&self) -> bool {
        matches!(self, Self::Database(error)
            if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)))
    }

    /// Turns a suspicion into damage if SQLite finds the file in disorder when it looks again.
    pub(crate) fn confirm_damage(self, connection: Result<&rusqlite::Connection, Self>) -> Self {
        if !self.suspects_damage() {
            return self;
        }
        let looked = connection.and_then(|connection| {
            Ok(connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?)
        });
        let position = Position::File { file: PathBuf::from("journal/journal.db") };
        match looked {
            Ok(found) if found == "ok" => self,
            Ok(found) => Self::damaged(position, found),
            Err(error) if error.suspects_damage() => Self::damaged(position, error.to_string()),
            Err(error) => error,
        }
    }

    /// Who is to blame decides whether the rest of a group may still be written.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::InvalidRecord { .. } | Self::RunSequence { .. } | Self::ProjectionRefused { .. } => Blame::Batch,
            _ => Blame::Store,
        }
    }
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { path: PathBuf::from("journal/journal.db") },
            _ => Self::Database(Arc::new(error)),
        }
    }
}

impl ToStableError for JournalError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let (code, category, hint) = match self {
            Self::StateInUse { .. } => (
                "state_in_use",
                ErrorCategory::Conflict,
                "stop the other daemon, or point PALYRA_STATE_ROOT at another directory",
            ),
            Self::Damaged { .. } => (
                "journal_damaged",
                ErrorCategory::Conflict,
                "run `palyra journal verify`, then restore a backup with `palyra journal restore`, or give all records up with `palyra journal accept-loss`",
            ),
            Self::SchemaNewer { .. } => (
                "journal_schema_newer",
                ErrorCategory::Conflict,
                "use the release that wrote this state, or a newer one",
            ),
            Self::SchemaOlder { .. } => {
                ("journal_schema_older", ErrorCategory::Conflict, "start the daemon once; it migrates the journal")
            }
            Self::ReadOnly { .. } => (
                "state_read_only",
                ErrorCategory::Availability,
                "remount it read-write, or point PALYRA_STATE_ROOT elsewhere; `palyra journal tail`, `export` and `verify` read it as it is",
            ),
            Self::DiskFull { .. } => {
                ("disk_full", ErrorCategory::Availability, "free some disk space; accepted work is not lost")
            }
            Self::Database(_) | Self::File { .. } => (
                "storage_failed",
                if self.is_transient() { ErrorCategory::Availability } else { ErrorCategory::Internal },
                "check the disk and the permissions of the state root",
            ),
            Self::InvalidRecord { .. } => {
                ("invalid_record", ErrorCategory::Validation, "fix the record; nothing from its batch was written")
            }
            Self::RunSequence { .. } => {
                ("run_sequence_conflict", ErrorCategory::Conflict, "only the driver of a run may append to its tape")
            }
            Self::ProjectionRefused { .. } => {
                ("projection_refused", ErrorCategory::Conflict, "nothing from the batch was written")
            }
            Self::Busy { .. } => ("journal_busy", ErrorCategory::Availability, "try again in a moment"),
            Self::Closed => ("journal_closed", ErrorCategory::Availability, "the daemon is stopping; start it again"),
            Self::Unsigned { .. } => (
                "record_unsigned",
                ErrorCategory::Conflict,
                "run `palyra daemon start` once; the daemon signs unsigned records at startup",
            ),
            Self::NoSuchRecord { .. } => {
                ("record_not_found", ErrorCategory::NotFound, "`palyra journal tail` shows the last records")
            }
            Self::NoSuchArtifact { .. } => (
                "artifact_not_found",
                ErrorCategory::NotFound,
                "compare with the digest in the record that refers to it",
            ),
            Self::ArtifactChanged { .. } => {
                ("artifact_changed", ErrorCategory::Conflict, "restore the file from a backup")
            }
            Self::Key { .. } => (
                "journal_key_unusable",
                ErrorCategory::Conflict,
                "restore the key file (mode 0600), or restore the state from a backup, which creates a new key",
            ),
            Self::WouldOverwrite { .. } => {
                ("would_overwrite", ErrorCategory::Conflict, "choose another path, or move the existing one away")
            }
            Self::BadBackup { .. } => ("backup_unusable", ErrorCategory::Validation, "choose another backup"),
            Self::ProofRefuted { .. } => (
                "proof_refuted",
                ErrorCategory::Validation,
                "the record, the path or the checkpoint was modified; get the proof from its source again",
            ),
            Self::NoRestore { .. } => {
                ("restore_not_found", ErrorCategory::NotFound, "nothing to do: work is not held back by a restore")
            }
            Self::NoLoss { .. } => (
                "loss_not_found",
                ErrorCategory::NotFound,
                "nothing to do: the daemon starts with this journal; `palyra journal verify` checks every record",
            ),
            Self::NoJournal { .. } => {
                ("journal_not_found", ErrorCategory::NotFound, "check PALYRA_STATE_ROOT, or start the daemon once")
            }
        };
        let retry = match self {
            Self::DiskFull { .. } | Self::Busy { .. } => Retry::MayHelp,
            Self::Database(_) | Self::File { .. } if self.is_transient() => Retry::MayHelp,
            _ => Retry::Pointless,
        };
        StableErrorEnvelope::new(code, category, self.to_string()).hint(hint).retryable(retry)
    }
}
