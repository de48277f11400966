//! Parameters that chats and responses share: what is honoured, what is accepted without effect, what is refused.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use crate::dispatch::{Refusal, Result};

/// Hints to a model or notes to a provider: without them an answer is as good. They are documented as having no effect.
const WITHOUT_EFFECT: [&str; 13] = [
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "service_tier",
    "store",
    "max_tokens",
    "max_completion_tokens",
];

/// What every request may say besides its own.
#[derive(Debug)]
pub(super) struct Common {
    /// The model by the name that the client uses.
    pub(super) model: String,
    /// Whether the answer comes in parts.
    pub(super) stream: bool,
    /// Where to work.
    pub(super) workspace: Option<String>,
    /// What the client wants to find again in the answer.
    pub(super) metadata: Map<String, Value>,
}

/// Takes the common parameters out of a request.
pub(super) fn common(fields: &mut Fields) -> Result<Common> {
    let model = fields.needed_text("model")?;
    let stream = fields.flag("stream")?;
    let metadata = match fields.take("metadata") {
        None => Map::new(),
        Some(Value::Object(map)) if map.values().all(Value::is_string) => map,
        Some(_) => return Err(Refusal::field("metadata", "it must be an object with string values")),
    };
    let workspace = metadata.get("workspace").and_then(Value::as_str).map(str::to_owned);
    fields.pass_over(&WITHOUT_EFFECT);
    let none = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    fields.only_if("logit_bias", none, "token biases are not supported")?;
    fields.only_if("top_logprobs", |value| *value == json!(0), "log probabilities are not available")?;
    Ok(Common { model, stream, workspace, metadata })
}
