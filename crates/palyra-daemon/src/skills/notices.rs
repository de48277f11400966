//! The channel that is always there: notices to the operator, on the journal.

use async_trait::async_trait;
use palyra_common::{Clock as _, RequestId, SystemClock};
use palyra_executors::{ChannelFailure, SkillChannels};
use palyra_journal::{Journal, NewRecord};
use serde_json::json;

/// Its name in manifests.
const OPERATOR: &str = "operator";
/// Kind of the records.
const NOTICE: &str = "channel.notice";
/// Longest notice.
const MAX_CHARACTERS: usize = 4_000;

/// Writes notices of skills to the journal, where `palyra journal tail` and every follower of it sees them.
pub(crate) struct Notices(pub(crate) Journal);

#[async_trait]
impl SkillChannels for Notices {
    async fn send(&self, skill_id: &str, channel: &str, text: &str) -> Result<String, ChannelFailure> {
        if channel != OPERATOR {
            return Err(ChannelFailure::Unknown(channel.to_owned()));
        }
        if text.is_empty() || text.chars().count() > MAX_CHARACTERS {
            return Err(ChannelFailure::Invalid(format!("a message has 1 to {MAX_CHARACTERS} characters")));
        }
        let id = RequestId::generate().to_string();
        let notice = json!({"id": id, "channel": channel, "from": format!("skill:{skill_id}"), "text": text});
        let record = NewRecord::new(NOTICE, SystemClock.now(), notice.to_string().into_bytes());
        self.0.append(vec![record]).await.map_err(|error| ChannelFailure::Unreachable(error.to_string()))?;
        tracing::info!(skill_id, id, "a skill left a notice for the operator");
        Ok(id)
    }
}
