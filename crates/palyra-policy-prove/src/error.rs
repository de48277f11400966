//! Why nothing could be shown. None of these means that an edit narrows.

use std::path::PathBuf;
use std::time::Duration;

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use palyra_policy::PolicyError;
use thiserror::Error;

/// A comparison that came to no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProveError {
    /// No solver is installed.
    #[error("no SMT solver is installed: neither `z3` nor `cvc5` is on PATH")]
    NoSolver,
    /// The solver that was named does not exist or may not be run.
    #[error("the SMT solver `{path}` cannot be run", path = path.display())]
    BadSolver {
        /// What was named.
        path: PathBuf,
    },
    /// The solver failed, or said something that was not understood.
    #[error("the SMT solver failed: {reason}")]
    SolverFailed {
        /// What happened.
        reason: String,
    },
    /// The solver came to no answer in time.
    #[error("the SMT solver timed out after {} s", limit.as_secs())]
    TimedOut {
        /// How long it had.
        limit: Duration,
    },
    /// A policy of the base can fail, and then denies; that is not compared.
    #[error("evaluating the policy `{policy}` can fail, so nothing can be proved about it")]
    CanFail {
        /// The policy.
        policy: String,
    },
    /// The symbolic compiler does not support something in the policies.
    #[error("the policies cannot be analysed: {reason}")]
    NotAnalysable {
        /// What.
        reason: String,
    },
    /// The policies themselves are faulty.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl ProveError {
    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn not_analysable(reason: impl ToString) -> Self {
        Self::NotAnalysable { reason: one_line(&reason.to_string()) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn failed(reason: impl ToString) -> Self {
        Self::SolverFailed { reason: one_line(&reason.to_string()) }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl ToStableError for ProveError {
    fn to_stable(&self) -> StableErrorEnvelope {
        use ErrorCategory::{Availability, Conflict, Dependency, Validation};
        let (code, category, hint) = match self {
            Self::Policy(error) => return error.to_stable(),
            Self::NoSolver => (
                "unsupported_without_solver",
                Dependency,
                "install z3 (`pip install z3-solver` contains the program) or cvc5, or name one with PALYRA_SMT_SOLVER",
            ),
            Self::BadSolver { .. } => {
                ("solver_unusable", Validation, "set PALYRA_SMT_SOLVER to the full path of z3 or cvc5")
            }
            Self::SolverFailed { .. } => ("solver_failed", Dependency, "use a current z3 (4.12 or newer) or cvc5"),
            Self::TimedOut { .. } => {
                ("solver_timeout", Availability, "allow more time with --timeout, or compare a smaller change")
            }
            Self::CanFail { .. } => {
                ("policy_can_fail", Conflict, "bound the numbers in the policy's arithmetic, or avoid arithmetic")
            }
            Self::NotAnalysable { .. } => (
                "policy_not_analysable",
                Validation,
                "use `palyra policy diff` and `palyra policy simulate` for this change",
            ),
        };
        StableErrorEnvelope::new(code, category, self.to_string()).hint(hint)
    }
}
