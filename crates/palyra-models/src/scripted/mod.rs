//! A provider that says what a script tells it. For tests and measurements; it answers at once.
//!
//! The format is described in `script.rs`. Auxiliary tasks without a script of their own get an extractive summary, so that
//! tests of other things need not write one; any other kind of auxiliary task is refused.

mod script;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use palyra_common::AuxiliaryTaskKind;

use crate::error::{ModelError, ModelErrorClass};
use crate::event::{ModelEvent, StopReason, Usage};
use crate::offline;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::{ModelRequest, Purpose};

pub use self::script::{Call, Echo, ModelErrorSpec, Scene, Script, Turn};

/// Name of this provider.
pub(crate) const NAME: &str = "scripted";
/// Window it claims to have.
const CONTEXT_TOKENS: u32 = 128_000;

/// Answers from a script.
#[derive(Debug, Clone)]
pub struct ScriptedProvider {
    script: Script,
    context_tokens: u32,
}

impl ScriptedProvider {
    /// Answers from this script.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script, context_tokens: CONTEXT_TOKENS }
    }

    /// Reads a script from JSON or TOML.
    #[expect(
        clippy::should_implement_trait,
        reason = "the companion of from_file; nobody parses providers generically"
    )]
    pub fn from_str(text: &str) -> Result<Self, ModelError> {
        Script::parse(text).map(Self::new)
    }

    /// Reads a script from a file.
    pub fn from_file(path: &Path) -> Result<Self, ModelError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("the model script `{}` cannot be read: {error}", path.display());
            ModelError::new(ModelErrorClass::Permanent, message)
        })?;
        Self::from_str(&text)
    }

    /// Claims another window, to test what happens when it fills.
    #[must_use]
    pub fn context_tokens(mut self, tokens: u32) -> Self {
        self.context_tokens = tokens;
        self
    }
}

#[async_trait]
impl ModelProvider for ScriptedProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn describe(&self) -> ProviderInfo {
        ProviderInfo {
            name: NAME.to_owned(),
            model: NAME.to_owned(),
            context_tokens: self.context_tokens,
            is_language_model: false,
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let Some((position, turn)) = self.script.turn_for(&request) else {
            return match request.purpose {
                Purpose::Auxiliary(AuxiliaryTaskKind::Summary) => Ok(offline::summary_stream(&request)),
                Purpose::Auxiliary(_) | Purpose::Turn => Err(exhausted(&request)),
            };
        };
        let deltas = turn.deltas(&request.messages);
        let delay = Duration::from_millis(turn.delay_ms);
        if let Some(error) = &turn.error
            && deltas.is_empty()
            && turn.calls.is_empty()
        {
            pause(delay).await;
            return Err(error.to_error());
        }
        let mut items: Vec<Result<ModelEvent, ModelError>> =
            deltas.into_iter().map(|delta| Ok(ModelEvent::TextDelta(delta))).collect();
        for (index, call) in turn.calls.iter().enumerate() {
            items.push(Ok(ModelEvent::ToolCallDelta {
                index: u32::try_from(index).ok(),
                id: Some(call.id_or_default(position + 1, index + 1)),
                name: Some(call.tool.clone()),
                arguments: call.arguments_text(),
            }));
        }
        match &turn.error {
            Some(error) => items.push(Err(error.to_error())),
            None => items.extend(ending(turn.usage, turn.stop_reason())),
        }
        if delay.is_zero() {
            return Ok(Box::pin(stream::iter(items)));
        }
        Ok(Box::pin(stream::unfold(items.into_iter(), move |mut items| async move {
            let item = items.next()?;
            pause(delay).await;
            Some((item, items))
        })))
    }
}

fn ending(usage: Option<Usage>, stop: StopReason) -> impl Iterator<Item = Result<ModelEvent, ModelError>> {
    usage.map(ModelEvent::Usage).into_iter().chain([ModelEvent::Finished(stop)]).map(Ok)
}

fn exhausted(request: &ModelRequest) -> ModelError {
    let work = request.since_last_user();
    let position = work.iter().filter(|message| message.role == crate::message::Role::Assistant).count() + 1;
    let said = request.last_user().and_then(|at| request.messages.get(at)).map_or("", |message| &message.content);
    let shown: String = said.chars().take(60).collect();
    ModelError::new(ModelErrorClass::Permanent, format!("the model script has no turn {position} for `{shown}`"))
}

async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
