//! Why a command was not carried out: one stable envelope, whatever the transport makes of it.

use palyra_client::command::invalid_field;
use palyra_common::{AcpCommand, ErrorCategory, StableErrorEnvelope, ToStableError};

/// A command that was refused or failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal(Box<StableErrorEnvelope>);

/// What the dispatcher answers.
pub(crate) type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// A command that is wrong in one field.
    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        invalid_field(field, message).into()
    }

    /// A defect.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        StableErrorEnvelope::new("internal", ErrorCategory::Internal, message).into()
    }

    /// The daemon is about to end.
    pub(crate) fn stopping() -> Self {
        StableErrorEnvelope::new("daemon_stopping", ErrorCategory::Availability, "the daemon is stopping")
            .hint("try again when it has restarted")
            .into()
    }

    /// A command that is answered with a stream, asked for where one answer is expected.
    pub(crate) fn streams(name: AcpCommand) -> Self {
        let message = format!("`{}` returns a stream", name.as_str());
        StableErrorEnvelope::new("command_streams", ErrorCategory::Validation, message)
            .hint("request it over WebSocket, gRPC, QUIC or its own URL")
            .into()
    }

    /// What it is.
    pub(crate) fn envelope(&self) -> &StableErrorEnvelope {
        &self.0
    }

    /// What it is, taken out.
    pub(crate) fn into_envelope(self) -> StableErrorEnvelope {
        *self.0
    }
}

impl<E: ToStableError> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(Box::new(error.to_stable()))
    }
}
