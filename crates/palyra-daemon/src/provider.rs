//! Which model provider this daemon has, and how that is told to people.

use std::sync::Arc;

use palyra_client::api::ProviderView;
use palyra_common::config::ModelConfig;
use palyra_common::{ComponentHealth, Environment, HealthStatus, StableErrorEnvelope, ToStableError as _, paths};
use palyra_models::{Accounts, HttpProviders, ModelProvider, SelectOptions, Selection, select};
use palyra_secrets::DaemonSecrets;

use crate::error::DaemonError;

/// A provider and why it was chosen.
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn ModelProvider>,
    pub(crate) reason: String,
}

impl Chosen {
    /// The provider that the configuration and `models.toml` mean. A key that is referred to and cannot be had refuses the start:
    /// going on without it would send the conversation somewhere else than the operator said.
    pub(crate) fn by_config(config: &ModelConfig, environment: &Environment) -> Result<Self, DaemonError> {
        let refused = |error: StableErrorEnvelope| DaemonError::Provider(Box::new(error));
        // Without a place for configuration there is no such file either.
        let accounts =
            paths::models_file(environment).map_or_else(|_| Ok(Accounts::default()), |path| Accounts::load(&path));
        let accounts = accounts.map_err(|error| refused(error.to_stable()))?;
        let options = SelectOptions {
            config,
            accounts: &accounts,
            environment,
            secrets: Arc::new(DaemonSecrets::new(environment.clone())),
            factory: Arc::new(HttpProviders),
        };
        let Selection { provider, reason, .. } = select(&options).map_err(|error| refused(error.to_stable()))?;
        Ok(Self { provider, reason })
    }

    /// The provider for people.
    pub(crate) fn view(&self) -> ProviderView {
        let info = self.provider.describe();
        ProviderView { name: info.name, model: info.model, reason: self.reason.clone() }
    }

    /// What health says about it. Nothing is sent to find out: health must not cost money or leave the machine.
    pub(crate) fn health(&self) -> ComponentHealth {
        let info = self.provider.describe();
        let model = if info.model.is_empty() { String::new() } else { format!(" with model `{}`", info.model) };
        let nature = if info.is_language_model { "a language model" } else { "not a language model" };
        ComponentHealth::new("provider", HealthStatus::Ok, format!("{}{model}, {nature}: {}", info.name, self.reason))
    }
}
