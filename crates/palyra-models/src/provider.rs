//! The one trait behind every model.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures::Stream;
use serde::{Deserialize, Serialize};

use crate::attempt::Answering;
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::ModelError;
use crate::event::ModelEvent;
use crate::model_entry::ModelEntry;
use crate::price::Seller;
use crate::request::ModelRequest;
use crate::unknown_model::UnknownModel;

/// An answer as it arrives. Dropping it closes the connection at once and ends all work on it.
///
/// INVARIANT: a stream either yields [`ModelEvent::Finished`] or ends with an error. An answer that breaks off without
/// either is reported as an error by the provider, so a half-written tool call never looks like a whole one.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// What a provider is, for display and for budgeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderInfo {
    /// The provider's name, such as `openai_compatible`.
    pub name: String,
    /// The model it uses when a request names none, as `provider/model` where it is one of a network; empty while that is not known.
    pub model: String,
    /// How many tokens fit into one call, request and answer together.
    pub context_tokens: u32,
    /// Whether a language model answers. The offline planner and scripts are none, and surfaces say so.
    pub is_language_model: bool,
}

/// A source of model answers.
#[async_trait]
pub trait ModelProvider: Send + Sync {
    /// The provider's stable name.
    fn name(&self) -> &str;

    /// What this provider is.
    fn describe(&self) -> ProviderInfo;

    /// What this provider is for a run of this agent, which may ask for a model by name.
    fn describe_for(&self, agent: &str, model: Option<&str>) -> ProviderInfo {
        let _ = agent;
        let mut info = self.describe();
        if let Some(model) = model {
            model.clone_into(&mut info.model);
        }
        info
    }

    /// The same, after the server was asked what it offers where that has to be known: whether it has a model that was asked for by
    /// name, which model it takes by itself, how much fits into a call. Answers are kept, so most runs ask nobody.
    async fn resolve(&self, agent: &str, model: Option<&str>) -> Result<ProviderInfo, UnknownModel> {
        Ok(self.describe_for(agent, model))
    }

    /// What makes the calls that begin now, where that can be replaced while others are under way.
    fn present(&self) -> Option<Arc<dyn ModelProvider>> {
        None
    }

    /// Whether failed calls are tried again in here. Whoever calls then does not.
    fn tries_again(&self) -> bool {
        false
    }

    /// Who may answer this request, the likeliest first. What a call may cost at worst follows from it.
    fn may_answer(&self, request: &ModelRequest) -> Vec<Answering> {
        let ProviderInfo { name, model, .. } = self.describe();
        let model = if request.model.is_empty() { model } else { request.model.clone() };
        vec![Answering { provider: name, model, credential: None }]
    }

    /// Who may be asked for these embeddings.
    fn may_embed(&self, request: &EmbeddingRequest) -> Vec<Answering> {
        vec![Answering { provider: self.describe().name, model: request.model.clone(), credential: None }]
    }

    /// Whom a call is bought from that this provider makes under the given name.
    fn seller(&self, provider: &str) -> Seller {
        let kind = if self.describe().is_language_model { self.name() } else { "offline" };
        Seller::new(provider, kind, None)
    }

    /// Whether the model that a run of this agent gets under this name is known to see images. Others get the words of one that does.
    fn sees_images(&self, agent: &str, model: &str) -> bool {
        let _ = (agent, model);
        false
    }

    /// Starts one model call. An error here means that nothing was answered; errors may still come on the stream.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;

    /// Asks an embedding model; `None` if this provider has none.
    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        let _ = request;
        Ok(None)
    }

    /// The models that can be asked for, as the server lists them; none if there is no list.
    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        Ok(Vec::new())
    }
}
