//! What happens to tokens, as it is written to the journal. The tokens in force are the sum of these.

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{PrincipalId, TokenId, TokenRecord};

/// One step in the life of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum TokenEvent {
    /// It was made.
    Created {
        /// The token.
        record: Box<TokenRecord>,
    },
    /// It got another secret.
    Rotated {
        /// The token.
        id: TokenId,
        /// When.
        at: Timestamp,
        /// By whom.
        by: PrincipalId,
        /// Digest of the new secret.
        hash: Digest,
        /// Until when the old secret still works, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous_until: Option<Timestamp>,
    },
    /// Somebody took it back.
    Revoked {
        /// The token.
        id: TokenId,
        /// When.
        at: Timestamp,
        /// By whom.
        by: PrincipalId,
    },
}

impl TokenEvent {
    /// Which token it is about.
    #[must_use]
    pub fn id(&self) -> &TokenId {
        match self {
            Self::Created { record } => &record.id,
            Self::Rotated { id, .. } | Self::Revoked { id, .. } => id,
        }
    }
}
