//! What can be wrong with a document, a patch or the values of a form.

use palyra_common::{ErrorCategory, FieldError, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum A2uiError {
    /// The document is not one.
    #[error("invalid document: {}", listed(.0))]
    Document(Vec<FieldError>),
    /// The patch is not one, or what it leads to is no document.
    #[error("invalid patch: {}", listed(.0))]
    Patch(Vec<FieldError>),
    /// The patch was made for another version.
    #[error("the canvas is at version {actual}, not {expected}")]
    Version {
        /// The version it was made for.
        expected: u64,
        /// The version there is.
        actual: u64,
    },
    /// What was entered does not fit the form.
    #[error("the form was not accepted: {}", listed(.0))]
    Values(Vec<FieldError>),
}

/// The problems in one line.
fn listed(problems: &[FieldError]) -> String {
    problems.iter().map(|problem| format!("`{}` {}", problem.field, problem.message)).collect::<Vec<_>>().join("; ")
}

impl ToStableError for A2uiError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        let (mut envelope, problems) = match self {
            Self::Document(problems) => (
                StableErrorEnvelope::new("a2ui_document_invalid", ErrorCategory::Validation, message)
                    .hint("docs/canvas.md lists the components and their fields"),
                problems.as_slice(),
            ),
            Self::Patch(problems) => (
                StableErrorEnvelope::new("a2ui_patch_invalid", ErrorCategory::Validation, message)
                    .hint("a patch is a list of RFC 6902 operations whose paths begin with `/root`"),
                problems.as_slice(),
            ),
            Self::Version { expected, actual } => (
                StableErrorEnvelope::new("canvas_version_conflict", ErrorCategory::Conflict, message)
                    .details(serde_json::json!({ "expected": expected, "actual": actual }))
                    .hint("read the canvas again, and repeat the change if it still applies"),
                Default::default(),
            ),
            Self::Values(problems) => (
                StableErrorEnvelope::new("canvas_values_invalid", ErrorCategory::Validation, message)
                    .hint("correct the named fields and submit again"),
                problems.as_slice(),
            ),
        };
        envelope.validation_errors = problems.to_vec();
        envelope
    }
}
