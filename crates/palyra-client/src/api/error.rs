//! The body of every answer that is not a success, and the last line of a stream that could not be finished.

use palyra_common::StableErrorEnvelope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `{"error": …}`; the HTTP status follows from the envelope's category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorResponse {
    /// What went wrong, in the shape that all surfaces share.
    pub error: StableErrorEnvelope,
}
