//! `Debug` for the messages that hold a secret: everything but the secret. `build.rs` lists the same messages, so a message
//! that is named there and not here does not compile.

use std::fmt;

use crate::auth::v1::{BeginPairingResponse, CreateTokenResponse, RotateTokenResponse};
use crate::gateway::v1::{GetSecretResponse, PutSecretRequest};

/// Stands where a secret is.
const MASK: &str = "***";

impl fmt::Debug for BeginPairingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeginPairingResponse")
            .field("pairing_id", &self.pairing_id)
            .field("code", &MASK)
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

impl fmt::Debug for CreateTokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateTokenResponse").field("token", &self.token).field("secret", &MASK).finish()
    }
}

impl fmt::Debug for RotateTokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotateTokenResponse").field("token", &self.token).field("secret", &MASK).finish()
    }
}

impl fmt::Debug for GetSecretResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetSecretResponse").field("secret", &self.secret).field("value", &MASK).finish()
    }
}

impl fmt::Debug for PutSecretRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutSecretRequest")
            .field("scope", &self.scope)
            .field("key", &self.key)
            .field("value", &MASK)
            .field("expected_version", &self.expected_version)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_printed() {
        let printed = [
            format!("{:?}", BeginPairingResponse { code: "s3cret".into(), ..Default::default() }),
            format!("{:?}", CreateTokenResponse { secret: "s3cret".into(), ..Default::default() }),
            format!("{:?}", RotateTokenResponse { secret: "s3cret".into(), ..Default::default() }),
            format!("{:?}", GetSecretResponse { value: b"s3cret".to_vec(), ..Default::default() }),
            format!("{:?}", PutSecretRequest { value: b"s3cret".to_vec(), key: "openai".into(), ..Default::default() }),
        ];
        let bytes = format!("{:?}", b"s3cret");
        for text in printed {
            assert!(text.contains(MASK) && !text.contains("s3cret") && !text.contains(&bytes[1..8]), "{text}");
        }
    }
}
