//! OpenRouter: many models behind one key, on the wire of chat completions with habits of its own.
//!
//! It names who is asking in headers, says in `usage` what a call cost, gives thoughts as `reasoning_details` and wants them back
//! unchanged, and reports failures of the providers behind it inside streams that began well. `judge` knows those, `entry` reads its
//! list of models with windows, abilities and prices.

mod entry;
mod judge;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::chat::{ChatClient, EffortField, GiveBack, Habits};
use crate::error::ModelError;
use crate::model_entry::ModelEntry;
use crate::openai::no_model;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
use crate::wire::HttpProviderOptions;

/// Where OpenRouter is.
const BASE_URL: &str = "https://openrouter.ai/api/v1";
/// How the models begin that only keep what is marked.
const ANTHROPIC: &str = "anthropic/";

/// OpenRouter.
#[derive(Debug)]
pub struct OpenRouter {
    chat: ChatClient,
    provider: String,
    model: Option<String>,
    context_tokens: u32,
}

impl OpenRouter {
    /// Checks the options and prepares a client; nothing is sent.
    pub fn new(options: HttpProviderOptions) -> Result<Self, ModelError> {
        let habits = Habits {
            usual_base_url: BASE_URL,
            usual_path: "/api/v1",
            // Who asks, for the provider's own statistics: the product and nothing about its user.
            headers: vec![
                ("x-title", "Palyra".to_owned()),
                ("http-referer", "https://github.com/palyra/palyra".to_owned()),
            ],
            judge: judge::judge,
            effort: EffortField::Nested,
            give_back: GiveBack::Everything,
            finish: finish_body,
            ..Habits::default()
        };
        Ok(Self {
            chat: ChatClient::new(&options, habits)?,
            model: options.present_model(),
            context_tokens: options.context_tokens,
            provider: options.name,
        })
    }
}

/// Asks for the cost, and marks what stays the same for models that only keep what is marked.
fn finish_body(body: &mut Map<String, Value>, request: &ModelRequest, model: &str) {
    body.insert("usage".to_owned(), json!({ "include": true }));
    let stable = usize::try_from(request.stable_messages).unwrap_or_default();
    if !model.starts_with(ANTHROPIC) || stable == 0 {
        return;
    }
    // Messages may have been added on the way, so the last stable one that is text is looked for from there backwards.
    let Some(Value::Array(messages)) = body.get_mut("messages") else { return };
    let plain = |message: &&mut Value| {
        message.get("content").is_some_and(Value::is_string) && message.get("tool_calls").is_none()
    };
    let Some(last) = messages.iter_mut().take(stable).rev().find(plain) else { return };
    if let Some(content) = last.get_mut("content") {
        let text = content.take();
        *content = json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
    }
}

#[async_trait]
impl ModelProvider for OpenRouter {
    fn name(&self) -> &str {
        &self.provider
    }

    fn describe(&self) -> ProviderInfo {
        ProviderInfo {
            name: self.provider.clone(),
            model: self.model.clone().unwrap_or_default(),
            context_tokens: self.context_tokens,
            is_language_model: true,
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let named = Some(request.model.as_str()).filter(|model| !model.is_empty()).or(self.model.as_deref());
        let model = named.map(str::to_owned).ok_or_else(|| no_model(&self.provider))?;
        self.chat.stream(&request, &model).await
    }

    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        self.chat.models(entry::read).await
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::RunId;

    use super::*;
    use crate::message::Message;
    use crate::request::Purpose;

    #[test]
    fn the_stable_beginning_is_marked_for_models_that_need_it() {
        let messages = vec![Message::system("rules"), Message::user("task")];
        let request =
            ModelRequest { stable_messages: 1, ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, messages) };
        let finished = |model: &str| {
            let mut body = Map::new();
            let messages = json!([{"role": "system", "content": "rules"}, {"role": "user", "content": "task"}]);
            body.insert("messages".to_owned(), messages);
            finish_body(&mut body, &request, model);
            Value::Object(body)
        };
        let marked = json!([{"type": "text", "text": "rules", "cache_control": {"type": "ephemeral"}}]);
        let body = finished("anthropic/claude");
        assert_eq!((&body["messages"][0]["content"], &body["messages"][1]["content"]), (&marked, &json!("task")));
        assert_eq!(finished("openai/gpt")["messages"][0]["content"], "rules");
        assert_eq!(finished("openai/gpt")["usage"], json!({"include": true}));
    }
}
