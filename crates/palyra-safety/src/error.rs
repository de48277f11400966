//! What can go wrong in this crate: a vault value that cannot be looked for, or a frame that is none.

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// Why a scanner could not be built or a frame not be opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SafetyError {
    /// So short a value would match everywhere.
    #[error("the vault value `{name}` has only {bytes} bytes, too few to scan for")]
    VaultValueTooShort {
        /// Name of the vault entry.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// The patterns do not fit the search automaton.
    #[error("the search automaton cannot be built: {reason}")]
    Automaton {
        /// What the library said; it names sizes, never patterns.
        reason: String,
    },
    /// The text is not a frame with this nonce.
    #[error("the text is not a valid frame of untrusted data: {reason}")]
    NotAFrame {
        /// What is missing or wrong.
        reason: &'static str,
    },
}

impl ToStableError for SafetyError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::VaultValueTooShort { .. } => {
                StableErrorEnvelope::new("safety_vault_value_too_short", ErrorCategory::Validation, message)
                    .hint("store a longer secret; values under four bytes cannot be protected by scanning")
            }
            Self::Automaton { .. } => {
                StableErrorEnvelope::new("safety_automaton_too_large", ErrorCategory::Validation, message)
                    .hint("scan for fewer or shorter vault values")
            }
            Self::NotAFrame { .. } => {
                StableErrorEnvelope::new("safety_frame_malformed", ErrorCategory::Validation, message)
                    .hint("pass the frame unchanged, with the nonce it was made with")
            }
        }
    }
}
