//! What can go wrong between a measurement and its report.

use std::path::PathBuf;

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// Why a report could not be written or read.
#[derive(Debug, Error)]
pub enum FiguresError {
    /// The name of a report becomes a file name, so only plain names are taken.
    #[error("`{name}` is not a report name; use lower-case letters, digits, `_` and `-`")]
    InvalidName {
        /// The name that was given.
        name: String,
    },
    /// A report without a figure would look like a success.
    #[error("the report `{name}` holds no figure")]
    Empty {
        /// The report in question.
        name: String,
    },
    /// The same id twice in one report.
    #[error("the figure `{id}` was reported twice")]
    Duplicate {
        /// The id in question.
        id: String,
    },
    /// A value that no verdict can be based on.
    #[error("the figure `{id}` is `{value}`, which is not a number to judge")]
    NotFinite {
        /// The figure in question.
        id: String,
        /// What was measured.
        value: f64,
    },
    /// Neither `PALYRA_FIGURES_DIR` nor a workspace above the current directory says where reports go.
    #[error("no workspace found above `{from}`")]
    NoWorkspace {
        /// Where the search began.
        from: PathBuf,
    },
    /// The page was asked for before anything was measured.
    #[error("no reports in `{directory}`")]
    NoReports {
        /// Where they were looked for.
        directory: PathBuf,
    },
    /// A file or directory could not be used.
    #[error("cannot use `{path}`: {source}")]
    Io {
        /// The path in question.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A stored report is not in the expected form.
    #[error("`{path}` is not a report: {source}")]
    Malformed {
        /// The file in question.
        path: PathBuf,
        /// Where the text goes wrong.
        source: serde_json::Error,
    },
}

impl ToStableError for FiguresError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::InvalidName { .. } => {
                StableErrorEnvelope::new("figures_invalid_name", ErrorCategory::Validation, message)
                    .hint("rename the report")
            }
            Self::Empty { .. } => StableErrorEnvelope::new("figures_empty", ErrorCategory::Validation, message)
                .hint("report at least one figure before finishing"),
            Self::Duplicate { .. } => StableErrorEnvelope::new("figures_duplicate", ErrorCategory::Validation, message)
                .hint("give each figure its own id"),
            Self::NotFinite { .. } => {
                StableErrorEnvelope::new("figures_not_finite", ErrorCategory::Validation, message)
                    .hint("look for a division by zero or an empty sample in the measuring program")
            }
            Self::NoWorkspace { .. } => {
                StableErrorEnvelope::new("figures_no_workspace", ErrorCategory::NotFound, message)
                    .hint("run it inside the checkout or set PALYRA_FIGURES_DIR")
            }
            Self::NoReports { .. } => StableErrorEnvelope::new("figures_no_reports", ErrorCategory::NotFound, message)
                .hint("run `make figures` first"),
            Self::Io { .. } => StableErrorEnvelope::new("figures_io", ErrorCategory::Dependency, message)
                .hint("check that the directory exists and is writable"),
            Self::Malformed { .. } => StableErrorEnvelope::new("figures_malformed", ErrorCategory::Validation, message)
                .hint("delete the file and run `make figures` again"),
        }
    }
}
