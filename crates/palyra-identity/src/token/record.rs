//! What is kept of a token.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use palyra_common::{DeviceId, Digest, PrincipalRole, Timestamp, TokenScope};
use serde::{Deserialize, Serialize};

use crate::{IdentityError, PrincipalId, Serial, TokenId};

/// Longest name of a token, in letters.
pub(crate) const MAX_NAME_LETTERS: usize = 64;

/// A token as it is stored: everything but its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Its public name.
    pub id: TokenId,
    /// What a person calls it.
    pub name: String,
    /// For whom it acts.
    pub subject: PrincipalId,
    /// As what.
    pub role: PrincipalRole,
    /// For what; never beyond the role.
    pub scopes: BTreeSet<TokenScope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: PrincipalId,
    /// With which token or device, if it was one; this token is good only while that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// How often a minute it may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_minute: Option<NonZeroU32>,
    /// When somebody took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// When it last got another secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// Digest of its secret.
    pub hash: Digest,
    /// The secret before, while it still works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousSecret>,
}

/// The credential that a token was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parent {
    /// Another token.
    Token(ParentToken),
    /// A device.
    Device(ParentDevice),
}

/// The device that a token was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentDevice {
    /// Which one.
    pub device: DeviceId,
    /// The certificate that was shown.
    pub serial: Serial,
}

/// The token that another one was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentToken {
    /// Which one.
    pub id: TokenId,
    /// Digest of the secret that was shown.
    pub secret: Digest,
}

/// A secret that was replaced and still works for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviousSecret {
    /// Digest of it.
    pub hash: Digest,
    /// Until when it works.
    pub until: Timestamp,
}

impl TokenRecord {
    /// Whether it can be used at an instant, by whoever holds its secret.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && !self.has_expired(now)
    }

    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }

    /// Checks what must hold for every token, when it is made and when it is read from history.
    pub(crate) fn check(&self) -> Result<(), IdentityError> {
        let letters = self.name.chars().count();
        if letters == 0 || letters > MAX_NAME_LETTERS || self.name.chars().any(char::is_control) {
            let reason = format!("its name must have 1 to {MAX_NAME_LETTERS} characters and no control characters");
            return Err(IdentityError::token_request(reason));
        }
        if self.name.trim() != self.name {
            return Err(IdentityError::token_request("its name must not begin or end with a space"));
        }
        if self.scopes.is_empty() {
            return Err(IdentityError::token_request("it needs at least one scope"));
        }
        match self.scopes.iter().find(|scope| !self.role.reaches(**scope)) {
            Some(scope) => Err(IdentityError::ScopeBeyondRole { scope: *scope }),
            None => Ok(()),
        }
    }
}

/// Longest time for which a replaced secret may go on working: a rotation that never ends is none.
pub(crate) const MAX_OVERLAP: Duration = Duration::from_secs(7 * 24 * 60 * 60);
