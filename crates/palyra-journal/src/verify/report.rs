//! What verification says.

use serde::{Deserialize, Serialize};

use crate::position::Position;

/// Beyond this many problems a state is beyond description; the walk ends and says so.
const MAX_PROBLEMS: usize = 1_000;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Where.
    pub position: Position,
    /// Stable snake_case code.
    pub code: String,
    /// What, for a person.
    pub message: String,
}

/// How far a verification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Records checked so far.
    pub records: u64,
    /// Records that the signed head speaks of.
    pub total: u64,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Records that were read.
    pub records: u64,
    /// Sealed segments that were read.
    pub segments: u64,
    /// Checkpoints whose signature, head and root were checked.
    pub checkpoints: u64,
    /// Artifacts whose bytes were checked.
    pub artifacts: u64,
    /// Projections that were rebuilt and compared.
    pub projections: Vec<String>,
    /// Projections in the database that were not compared, because their definition was not given or the log itself is unsound.
    pub unchecked_projections: Vec<String>,
    /// Projections that were compared with the digest that the writer keeps, because their definition was not given.
    #[serde(default)]
    pub projections_by_digest: Vec<String>,
    /// What could not be verified, and why.
    #[serde(default)]
    pub unverified: Vec<String>,
    /// Records that a projection is known to go on without.
    #[serde(default)]
    pub quarantined: u64,
    /// What is no problem and stays worth knowing, such as an acknowledged change of the signing key.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Whether there were more problems than are listed.
    pub more_problems: bool,
    /// Everything that is wrong, in the order it was found.
    pub problems: Vec<Problem>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether nothing is wrong and everything was looked at.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_sound() && self.unchecked_projections.is_empty() && self.unverified.is_empty()
    }

    pub(super) fn problem(&mut self, position: Position, code: &str, message: impl Into<String>) {
        if self.is_full() {
            self.more_problems = true;
            return;
        }
        let problem = Problem { position, code: code.to_owned(), message: message.into() };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }
}
