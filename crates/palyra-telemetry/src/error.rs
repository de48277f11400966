//! What can go wrong when telemetry starts. Afterwards nothing here fails: what cannot be written or sent is dropped and counted.

use std::io;
use std::path::PathBuf;

use palyra_common::{ErrorCategory, RedactedUrl, Retry, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// Why telemetry could not start.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// The log file cannot be written.
    #[error("the log file `{}` cannot be used: {source}", path.display())]
    LogFileUnusable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The collector's address or a header for it makes no sense.
    #[error("traces cannot be exported to `{endpoint}`: {reason}")]
    CollectorInvalid {
        /// The address, without a password that may be in it.
        endpoint: RedactedUrl,
        /// What is wrong.
        reason: String,
    },
    /// The service manager passed something that cannot be served.
    #[error("the descriptors passed by the service manager cannot be used: {reason}")]
    InheritedSocketInvalid {
        /// What is wrong.
        reason: String,
    },
}

impl ToStableError for TelemetryError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::LogFileUnusable { .. } => {
                StableErrorEnvelope::new("log_file_unusable", ErrorCategory::Availability, message)
                    .hint("check the directory's owner, permissions and free space, or set `log.file = false`")
                    .retryable(Retry::MayHelp)
            }
            Self::CollectorInvalid { .. } => {
                StableErrorEnvelope::new("collector_invalid", ErrorCategory::Validation, message)
                    .hint("write `telemetry.otlp_endpoint` as `http://host:4317` or `https://host:4317`")
            }
            Self::InheritedSocketInvalid { .. } => {
                StableErrorEnvelope::new("inherited_socket_invalid", ErrorCategory::Validation, message)
                    .hint("compare the `.socket` unit with the one in `infra/systemd`")
            }
        }
    }
}
