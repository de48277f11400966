//! A provider that can be replaced while calls are under way.
//!
//! Whoever makes a call asks for what is [`present`](ModelProvider::present) once, and stays with it to the call's end: a call that began keeps its
//! keys, its routes and the names under which it is billed.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use crate::attempt::Answering;
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::ModelError;
use crate::model_entry::ModelEntry;
use crate::price::Seller;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
use crate::unknown_model::UnknownModel;

/// The name of the place; what stands in it says its own in [`ModelProvider::describe`].
const NAME: &str = "models";

/// A place for a provider.
pub struct LiveProvider(RwLock<Arc<dyn ModelProvider>>);

impl LiveProvider {
    /// A place that this provider stands in.
    #[must_use]
    pub fn new(provider: Arc<dyn ModelProvider>) -> Self {
        Self(RwLock::new(provider))
    }

    /// Puts another provider into the place. Calls under way end with the one they began with.
    pub fn replace(&self, provider: Arc<dyn ModelProvider>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = provider;
    }

    /// The provider that stands in the place now.
    #[must_use]
    pub fn current(&self) -> Arc<dyn ModelProvider> {
        // One assignment replaces it, so a panic elsewhere does not spoil it.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl ModelProvider for LiveProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn describe(&self) -> ProviderInfo {
        self.current().describe()
    }

    fn describe_for(&self, agent: &str, model: Option<&str>) -> ProviderInfo {
        self.current().describe_for(agent, model)
    }

    async fn resolve(&self, agent: &str, model: Option<&str>) -> Result<ProviderInfo, UnknownModel> {
        self.current().resolve(agent, model).await
    }

    fn present(&self) -> Option<Arc<dyn ModelProvider>> {
        Some(self.current())
    }

    fn tries_again(&self) -> bool {
        self.current().tries_again()
    }

    fn may_answer(&self, request: &ModelRequest) -> Vec<Answering> {
        self.current().may_answer(request)
    }

    fn may_embed(&self, request: &EmbeddingRequest) -> Vec<Answering> {
        self.current().may_embed(request)
    }
    fn seller(&self, provider: &str) -> Seller {
        self.current().seller(provider)
    }

    fn sees_images(&self, agent: &str, model: &str) -> bool {
        self.current().sees_images(agent, model)
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.current().stream(request).await
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        self.current().embed(request).await
    }

    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        self.current().models().await
    }
}
