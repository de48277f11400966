//! Workspace checkpoints: what the files were before a process could write to them, so that its changes can be shown and taken back.
//!
//! A tool that writes by itself knows what it changes; a process does not say. So before it starts, the regular files of the workspace are
//! looked at and copied aside, and after it ended they are looked at again. What differs becomes the same [`FileChange`]s that other tools
//! report, and `undo` needs to know nothing about processes.
//!
//! The cost: the first checkpoint of a workspace copies its files (shared blocks where the file system can, see [`store`]); every later one asks
//! for the size and times of each file and copies only what changed since. Everything is covered, `.git` and what ignore files exclude among it, but for what [`coverage`] says. Named in the
//! result whenever it changed, and not taken back: owners and extended attributes.
//!
//! Comparing does not tell who changed a file. A change counts as the call's unless something speaks against it: it was made while the program did not run
//! ([`IdlePeriods`]), while a call of another run was at work, or by a tool that reports its own writes ([`WorkspaceActivity`]). How much the first proves depends on
//! which of the call's writers can be observed ([`WriterVisibility`]).

mod activity;
mod attributes;
mod beside_files;
mod compare;
mod coverage;
mod excluded;
mod idle;
mod look;
mod stamp;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use palyra_common::Digest;

use self::activity::TrackedCall;
use self::coverage::Findings;
use self::look::{DirectoryStamp, Other};
use self::stamp::Stamp;
use crate::{Reach, WorkspacePath};

pub use activity::WorkspaceActivity;
pub use compare::Changed;
pub(crate) use coverage::is_rebuilt;
pub use idle::IdlePeriods;
pub use store::CheckpointStore;

/// How much a checkpoint may cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// Files above this are not copied.
    pub file_bytes: u64,
    /// All copies of one workspace together.
    pub total_bytes: u64,
    /// Files that are looked at.
    pub files: usize,
    /// Bytes of changed files that are hashed afterwards.
    pub hashed_bytes: u64,
    /// Entries of a directory of build products or packages that ignore files exclude; one with more is not copied.
    pub tree_entries: usize,
    /// The same in bytes of its files.
    pub tree_bytes: u64,
    /// Entries of such a directory that are looked through for what leads outside the workspace.
    pub looked_through: usize,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self {
            file_bytes: 256 << 20,
            total_bytes: 2 << 30,
            files: 200_000,
            hashed_bytes: 4 << 30,
            tree_entries: 2_000,
            tree_bytes: 32 << 20,
            looked_through: 200_000,
        }
    }
}

/// What making a checkpoint took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckpointCost {
    /// Files that are covered.
    pub files: usize,
    /// Of these, files that had to be copied now.
    pub copied: usize,
    /// Bytes of those.
    pub copied_bytes: u64,
    /// How long it took.
    pub took: Duration,
}

/// Which of the processes that write for a call are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterVisibility {
    /// All of them. What was made and last changed while they slept is certainly not theirs.
    Complete,
    /// Some. What changed while they slept may be somebody else's, or that of a process that writes on their behalf, such as a container's.
    Partial,
    /// None. Every change may be somebody else's.
    Absent,
}

/// The files of a workspace at one moment.
#[derive(Debug)]
pub struct Checkpoint {
    files: BTreeMap<WorkspacePath, Kept>,
    directories: BTreeMap<WorkspacePath, DirectoryStamp>,
    /// Things that are not regular files, and what they are.
    others: BTreeMap<WorkspacePath, Other>,
    /// What was there and not looked at, because it is filled again or the limit was reached; of a directory only its own name.
    unseen: BTreeSet<WorkspacePath>,
    /// What else was found.
    findings: Findings,
    limits: CheckpointLimits,
    /// How many files there were that were not looked at, because there are too many.
    uncounted: usize,
    /// When it was begun.
    begun: SystemTime,
    cost: CheckpointCost,
    store: Arc<store::Shelf>,
    call: TrackedCall,
    writers: WriterVisibility,
}

/// One file at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    stamp: Stamp,
    /// Its copy; `None` if it was left out.
    content: Option<Digest>,
    /// Its extended attributes, if it has any.
    attributes: Option<Digest>,
    /// Whether ignore files exclude it.
    excluded: bool,
}

impl Checkpoint {
    /// What making it took.
    #[must_use]
    pub fn cost(&self) -> CheckpointCost {
        self.cost
    }

    /// What speaks against a program's being contained that writes to the workspace from now on.
    #[must_use]
    pub fn reaches(&self) -> Vec<Reach> {
        self.findings.reaches()
    }

    /// How many files it does not cover because there are too many.
    #[must_use]
    pub fn uncounted(&self) -> usize {
        self.uncounted
    }

    /// The same checkpoint for a call of which only these writers are observed.
    #[must_use]
    pub fn with_writers(self, writers: WriterVisibility) -> Self {
        Self { writers, ..self }
    }

    /// Where whoever observes the call's program notes when it did not run.
    #[must_use]
    pub fn idle_periods(&self) -> IdlePeriods {
        self.call.idle.clone()
    }
}
