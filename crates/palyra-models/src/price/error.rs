//! What can be wrong with a price file.

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// A price file that cannot be used. None of it counts then: half a table would be a wrong one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the price file `{origin}` cannot be used: {reason}")]
pub struct PriceFileError {
    /// Which file.
    pub origin: String,
    /// What is wrong, in one line.
    pub reason: String,
}

impl ToStableError for PriceFileError {
    fn to_stable(&self) -> StableErrorEnvelope {
        StableErrorEnvelope::new("price_file_invalid", ErrorCategory::Validation, self.to_string()).hint(
            "write `version = 1` and entries such as `[[price]]` with `provider`, `models`, `input` and `output` in micro-dollars per million tokens",
        )
    }
}
