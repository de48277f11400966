//! API tokens: what programs show to be let in.

use palyra_common::{PrincipalRole, Timestamp, TokenScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTokenParams {
    /// What it is for, for people.
    pub name: String,
    /// The most it may do.
    pub role: PrincipalRole,
    /// Less than its role gives; everything of the role when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<TokenScope>>,
    /// For whom it acts, such as `alice`; for whoever makes it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Seconds until it ends; it does not end when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 315_360_000))]
    pub expires_in_seconds: Option<u64>,
    /// Commands that it may give in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub rate_per_minute: Option<u32>,
}

/// Gives a token a new secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateTokenParams {
    /// Minutes for which the old secret still works; not at all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_minutes: Option<u32>,
}

/// A token together with its secret, which is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenSecretResponse {
    /// The token.
    pub token: TokenView,
    /// What to send as `Authorization: Bearer …`.
    pub secret: String,
}

/// All tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListTokensResponse {
    /// Newest first.
    pub tokens: Vec<TokenView>,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// Its id, which is also part of its text.
    pub token_id: String,
    /// What it is for.
    pub name: String,
    /// For whom it acts.
    pub subject: String,
    /// The most it may do.
    pub role: PrincipalRole,
    /// What it may do.
    pub scopes: Vec<TokenScope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// When it ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// When it got its present secret, if that is not its first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// When it became worthless, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// Commands that it may give in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_minute: Option<u32>,
}
