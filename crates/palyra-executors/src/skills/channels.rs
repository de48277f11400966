//! Messages of skills to people.
//!
//! Which channels there are is the daemon's concern; a skill writes to those that it was granted, by name.

use async_trait::async_trait;

/// Sends messages of skills.
#[async_trait]
pub trait SkillChannels: Send + Sync + 'static {
    /// Sends a text over a channel on behalf of a skill and returns the message's id, or says in a sentence why it could not be sent.
    async fn send(&self, skill_id: &str, channel: &str, text: &str) -> Result<String, ChannelFailure>;
}

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelFailure {
    /// There is no such channel.
    #[error("there is no channel `{0}`")]
    Unknown(String),
    /// The text cannot be sent.
    #[error("{0}")]
    Invalid(String),
    /// It could not be handed over.
    #[error("{0}")]
    Unreachable(String),
}

/// No channels at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoChannels;

#[async_trait]
impl SkillChannels for NoChannels {
    async fn send(&self, _: &str, channel: &str, _: &str) -> Result<String, ChannelFailure> {
        Err(ChannelFailure::Unknown(channel.to_owned()))
    }
}
