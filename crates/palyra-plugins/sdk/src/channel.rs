//! Messages to people, over channels that were granted.

use crate::HostFailure;
use crate::bindings::host::palyra::host::{capabilities, channel as wit};

/// One channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel(u64);

impl Channel {
    /// The channel of this name.
    pub fn named(name: &str) -> Result<Self, HostFailure> {
        (0..capabilities::channel_count())
            .filter_map(capabilities::channel_handle)
            .find(|handle| capabilities::channel_name(*handle).as_deref() == Some(name))
            .map(Self)
            .ok_or(HostFailure::NoGrant)
    }

    /// Sends text and returns the message's id.
    pub fn send(self, text: &str) -> Result<String, HostFailure> {
        Ok(wit::send(self.0, text)?)
    }
}
