//! `palyra:host/channel`: messages to people.

use wasmtime::Result;

use super::wit::channel::Host;
use super::wit::failures::Failure;
use crate::services::HostFailure;
use crate::state::CallState;
use crate::usage::HostCall;

/// Bytes of one message.
const MAX_TEXT_BYTES: usize = 64 << 10;

impl Host for CallState {
    async fn send(&mut self, channel: u64, text: String) -> Result<Result<String, Failure>> {
        self.shared.count(HostCall::ChannelSend)?;
        let shared = &self.shared;
        let checked = match shared.channel(channel) {
            None => Err(HostFailure::NoGrant),
            Some(_) if text.is_empty() || text.len() > MAX_TEXT_BYTES => {
                Err(HostFailure::Invalid(format!("a message must have between 1 and {MAX_TEXT_BYTES} bytes")))
            }
            Some(grant) => shared.within(&[HostCall::ChannelSend], shared.limits.channel, "messages").map(|()| grant),
        };
        let result = match checked {
            Ok(grant) => shared.services.channel_send(grant, text).await,
            Err(failure) => Err(failure),
        };
        Ok(shared.note(HostCall::ChannelSend, result).map_err(Failure::from))
    }
}
