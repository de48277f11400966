//! The journal: the one append-only log that everything Palyra does is written to before it counts.
//!
//! - **Appending.** One writer thread owns the database; callers share a commit and are answered when it is durable
//!   ([`Journal::append`]).
//! - **Reading.** A pool of threads with a connection each; a read sees one state of the log ([`Journal::read`], [`Reader`]).
//! - **Proof.** Every record's hash covers the one before; a Merkle tree over the hashes has its root signed right after every
//!   commit, which itself is sealed; kept checkpoints, an anchor outside the database, inclusion proofs that stand alone ([`InclusionProof`]), and [`verify`].
//! - **Projections.** Tables derived from the log in the same transaction and rebuilt from it when their definition changes
//!   ([`Projection`]).
//! - **Growth.** Old records move into sealed segments, large payloads into content-addressed artifacts ([`ArtifactStore`]).
//! - **Trouble.** Damage sets the database aside and refuses until [`restore`] or [`accept_loss`]; a full disk refuses what
//!   does not fit and nothing else; [`state_health`] says what is wrong and what to do.
//!
//! SQLite is the store because it survives power loss with one wait for the disk per commit and needs no administration; it is
//! opened in `db.rs` alone.

mod anchor;
mod artifacts;
mod backup;
mod block;
mod chain;
mod checkpoint;
mod collect;
mod commit;
mod convert;
mod damage;
mod db;
mod error;
mod first_commit;
mod health;
mod journal;
mod keys;
mod layout;
mod lock;
mod maintenance;
mod merkle;
mod offline;
mod open;
mod options;
mod pool;
mod position;
mod projection;
mod proof;
mod reader;
mod record;
mod restored;
mod restores;
mod row;
mod run_heads;
mod salvage;
mod seal;
mod segment_pool;
mod segments;
mod shared;
mod table_digests;
mod tables;
mod verify;
mod wal;
mod writer;

pub use rusqlite;

pub use artifacts::{ArtifactStore, Incoming};
pub use backup::{BackupReport, restore};
pub use checkpoint::{JournalId, SignedCheckpoint};
pub use collect::Collected;
pub use damage::{DamageMarker, accept_loss};
pub use error::JournalError;
pub use first_commit::FirstCommit;
pub use health::{Finding, Severity, state_health};
pub use journal::{Appended, Journal, PendingAppend};
pub use keys::PublicKey;
pub use layout::check_writable;
pub use offline::open_read_only;
pub use options::{FaultInjector, JournalOptions};
pub use position::Position;
pub use projection::{KEPT_ARTIFACT, Projection, ProjectionError};
pub use proof::{InclusionProof, ProvenRecord};
pub use reader::Reader;
pub use record::{Head, NewRecord, StoredRecord};
pub use restored::{AcceptedRestore, RestoredNote, accept_restore, awaiting_acceptance};
pub use restores::{RESTORE_ACCEPTED_KIND, RESTORED_KIND, Restore};
pub use salvage::{SalvageReport, Salvaged, salvage};
pub use verify::{Problem, ProgressCallback, VerifyOptions, VerifyProgress, VerifyReport, verify};
