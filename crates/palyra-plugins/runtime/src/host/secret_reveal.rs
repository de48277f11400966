//! `palyra:host/secret-reveal`: the value of a secret, for the few plugins that may see one.

use wasmtime::Result;

use super::wit::failures::Failure;
use super::wit::secret_reveal::Host;
use crate::grants::SecretUse;
use crate::services::HostFailure;
use crate::state::CallState;
use crate::usage::HostCall;

impl Host for CallState {
    async fn reveal(&mut self, secret: u64) -> Result<Result<Vec<u8>, Failure>> {
        self.shared.count(HostCall::SecretReveal)?;
        let shared = &self.shared;
        let result = match shared.secret(secret) {
            None => Err(HostFailure::NoGrant),
            Some(grant) if grant.usage != SecretUse::Reveal => {
                Err(HostFailure::Denied(format!("the secret `{}` may be used in requests but not read", grant.name)))
            }
            Some(grant) => match shared.within(&[HostCall::SecretReveal], shared.limits.reveal, "secrets visible") {
                Ok(()) => shared.services.reveal(grant).await,
                Err(failure) => Err(failure),
            },
        };
        let result = shared.note(HostCall::SecretReveal, result);
        // The guest's copy is its own from here on; ours is overwritten when the last owner drops it.
        Ok(result.map(|value| value.expose().clone()).map_err(Failure::from))
    }
}
