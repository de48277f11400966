//! What is wrong with a message that cannot be read.

use palyra_common::{ErrorCategory, FieldError, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// A message that does not mean anything in the shared vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtoError {
    /// A field that must be there and is not.
    #[error("the field `{field}` is missing")]
    Missing {
        /// Path of the field, such as `event.at`.
        field: String,
    },
    /// A field whose value does not fit.
    #[error("the field `{field}` is invalid: {reason}")]
    Invalid {
        /// Path of the field, such as `event.run_id`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ProtoError {
    /// A field that must be there and is not.
    #[must_use]
    pub fn missing(field: &str) -> Self {
        Self::Missing { field: field.to_owned() }
    }

    /// A field whose value does not fit.
    #[must_use]
    pub fn invalid(field: &str, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.to_owned(), reason: reason.into() }
    }

    /// The same error about a message that is itself a field.
    #[must_use]
    pub fn inside(self, outer: &str) -> Self {
        match self {
            Self::Missing { field } => Self::Missing { field: format!("{outer}.{field}") },
            Self::Invalid { field, reason } => Self::Invalid { field: format!("{outer}.{field}"), reason },
        }
    }

    /// Path of the field.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::Missing { field } | Self::Invalid { field, .. } => field,
        }
    }
}

impl ToStableError for ProtoError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let code = match self {
            Self::Missing { .. } => "missing",
            Self::Invalid { .. } => "invalid",
        };
        let mut envelope =
            StableErrorEnvelope::new("proto_message_invalid", ErrorCategory::Validation, self.to_string())
                .hint("compare the message with the schema that the daemon serves by reflection");
        envelope.validation_errors.push(FieldError {
            field: self.field().to_owned(),
            code: code.to_owned(),
            message: self.to_string(),
        });
        envelope
    }
}
