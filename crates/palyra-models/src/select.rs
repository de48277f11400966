//! Which provider a configuration means, and why.
//!
//! Nothing is sent anywhere by choosing. A network provider is chosen only when somebody named it, a server or a key for it; the
//! reason says in plain words where the conversation will go, so that a surface can show it before the first call. Keys that lie in
//! the environment and were not chosen are mentioned, never used.
//!
//! `model.provider` decides. With `auto` the default route of `models.toml` goes first, then OPENAI_BASE_URL and OPENAI_API_KEY, then the
//! offline planner. Whatever is reached over a network stands behind a [`Router`], which tries again and goes on.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::config::{ModelConfig, ModelProviderChoice};
use palyra_common::{Environment, SecretError, SecretResolver, StableErrorEnvelope, ToStableError};
use thiserror::Error;

use crate::accounts::{Account, AccountKey, Accounts, ProviderKind};
use crate::detect::{key_in, offers_of_environment, own_url};
use crate::error::{ModelError, ModelErrorClass};
use crate::offline::OfflineProvider;
use crate::provider::ModelProvider;
use crate::route::{AnswerMemory, ProviderFactory, Router, RouterOptions};
use crate::scripted::ScriptedProvider;
use crate::wire::{BaseUrl, HttpProviderOptions, Timeouts};

/// The name of the one key of a simple configuration.
const KEY_NAME: &str = "default";

/// What a choice is made from.
#[derive(Clone)]
pub struct SelectOptions<'a> {
    /// The `[model]` section of the configuration.
    pub config: &'a ModelConfig,
    /// What `models.toml` says.
    pub accounts: &'a Accounts,
    /// The environment, in which providers' own variables are looked for.
    pub environment: &'a Environment,
    /// Reads keys.
    pub secrets: Arc<dyn SecretResolver>,
    /// Makes providers.
    pub factory: Arc<dyn ProviderFactory>,
    /// Who answered before, where somebody keeps that.
    pub memory: Option<Arc<dyn AnswerMemory>>,
}

/// The chosen provider.
#[derive(Clone)]
pub struct Selection {
    /// What answers.
    pub provider: Arc<dyn ModelProvider>,
    /// The same, where it is a router.
    pub router: Option<Router>,
    /// Why it was chosen and where the conversation goes, for people, in one line.
    pub reason: String,
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("provider", &self.provider.describe()).field("reason", &self.reason).finish()
    }
}

/// Why there is no provider.
#[derive(Debug, Error)]
pub enum SelectError {
    /// Its key cannot be had. Going on without it would send the conversation somewhere else than the operator said.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// It cannot be used as it is configured.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl ToStableError for SelectError {
    fn to_stable(&self) -> StableErrorEnvelope {
        match self {
            Self::Secret(error) => error.to_stable(),
            Self::Model(error) => error.to_stable(),
        }
    }
}

/// Chooses by configuration. Reads at most one key, which may block.
pub fn select(options: &SelectOptions<'_>) -> Result<Selection, SelectError> {
    let config = options.config;
    let has_server = given(config.base_url.as_deref()).is_some();
    let has_key = config.api_key.as_ref().is_some_and(|key| !is_blank_variable(key, options.environment));
    match config.provider {
        ModelProviderChoice::Offline => Ok(offline("`model.provider` is `offline`", "")),
        ModelProviderChoice::Scripted => Ok(scripted(config.script.as_deref())?),
        ModelProviderChoice::Auto if !options.accounts.routes.default.is_empty() => Ok(routed(options)?),
        ModelProviderChoice::Auto if has_server || has_key => single(options, ProviderKind::OpenaiCompatible),
        ModelProviderChoice::Auto => {
            let because = "no model is configured";
            Ok(offline(because, &unused(options.environment)))
        }
        // Files of before wrote `openai` for any server that speaks like it.
        ModelProviderChoice::Openai if has_server && !is_openai(config) => {
            single(options, ProviderKind::OpenaiCompatible)
        }
        ModelProviderChoice::Openai
        | ModelProviderChoice::OpenaiCompatible
        | ModelProviderChoice::Anthropic
        | ModelProviderChoice::Gemini
        | ModelProviderChoice::Openrouter
        | ModelProviderChoice::Ollama => {
            single(options, ProviderKind::of_choice(config.provider).unwrap_or(ProviderKind::OpenaiCompatible))
        }
    }
}

fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// A variable that holds only white space holds no key.
fn is_blank_variable(key: &palyra_common::SecretRef, environment: &Environment) -> bool {
    match key {
        palyra_common::SecretRef::Env(name) => environment.text(name).is_some_and(|value| value.trim().is_empty()),
        _ => false,
    }
}

fn is_openai(config: &ModelConfig) -> bool {
    let url = given(config.base_url.as_deref()).and_then(|url| url.parse::<reqwest::Url>().ok());
    url.is_some_and(|url| url.host_str() == Some("api.openai.com"))
}

fn offline(because: &str, remark: &str) -> Selection {
    let reason =
        format!("{because}: the offline planner answers, which is not a language model; nothing is sent{remark}");
    Selection { provider: Arc::new(OfflineProvider::new()), router: None, reason }
}

/// A word on keys that are there and were not chosen.
fn unused(environment: &Environment) -> String {
    let offers = offers_of_environment(environment);
    let Some(first) = offers.first() else { return String::new() };
    format!("; {}: to use it, run `{}`", first.why, first.command())
}

fn scripted(script: Option<&Path>) -> Result<Selection, ModelError> {
    let path = script.ok_or_else(|| {
        ModelError::new(ModelErrorClass::Permanent, "`model.provider` is `scripted` but `model.script` names no file")
    })?;
    let provider = ScriptedProvider::from_file(path)?;
    let reason = format!("`model.provider` is `scripted`: answers come from `{}`; nothing is sent", path.display());
    Ok(Selection { provider: Arc::new(provider), router: None, reason })
}

/// The routes of `models.toml`.
fn routed(options: &SelectOptions<'_>) -> Result<Selection, ModelError> {
    let router = Router::new(options.accounts.clone(), router_options(options))?;
    let chain = router.target_for(crate::route::Wish::turn())?;
    let steps: Vec<String> =
        chain.targets.iter().map(|target| format!("`{}` at `{}`", target.name, target.destination)).collect();
    let reason =
        format!("models.toml has a default route: the conversation is sent to {}", steps.join(", failing that to "));
    Ok(Selection { provider: Arc::new(router.clone()), router: Some(router), reason })
}

/// The one provider of a simple configuration.
fn single(options: &SelectOptions<'_>, kind: ProviderKind) -> Result<Selection, SelectError> {
    let SelectOptions { config, environment, .. } = *options;
    // `model.base_url` has taken OPENAI_BASE_URL in already, where that counts.
    let own =
        || matches!(kind, ProviderKind::Ollama | ProviderKind::Anthropic).then(|| own_url(kind, environment)).flatten();
    let base_url = given(config.base_url.as_deref()).map(str::to_owned).or_else(own);
    let own_key = || key_in(kind, environment).filter(|_| config.provider != ModelProviderChoice::OpenaiCompatible);
    let reference = config.api_key.clone().filter(|key| !is_blank_variable(key, environment)).or_else(own_key);
    let key = reference.as_ref().map(|reference| options.secrets.resolve(reference)).transpose()?;
    let key = key.filter(|key| !key.expose().trim().is_empty());
    let because = because(config, kind, base_url.is_some(), key.is_some());
    if key.is_none() && base_url.is_none() && kind.wants_key() {
        let variable = kind.key_variables().first().copied().unwrap_or_default();
        let message = format!("`{kind}` wants a key and there is none; set {variable} or `model.api_key`");
        return Err(ModelError::new(ModelErrorClass::Auth, message).into());
    }
    // A key without a server belongs to OpenAI, as every program that reads OPENAI_API_KEY takes it.
    let url = base_url.or_else(|| kind.usual_url().or_else(|| ProviderKind::Openai.usual_url()).map(str::to_owned));
    let url = url.unwrap_or_default();
    let (server, warning) = shown(kind, &url)?;
    let name = given(config.name.as_deref()).map(str::to_owned);
    let model = name.or_else(|| kind.first_model().map(str::to_owned));
    let context_tokens = configured_window(config).unwrap_or_else(|| kind.usual_window());
    let account = Account {
        base_url: Some(url),
        context_tokens: configured_window(config),
        // What the operator's one model can do is not known: it is asked and may refuse.
        capabilities: Some(crate::model_entry::Capability::ALL.to_vec()),
        keys: reference
            .filter(|_| key.is_some())
            .map(|key| AccountKey { name: KEY_NAME.to_owned(), key })
            .into_iter()
            .collect(),
        ..Account::new(kind)
    };
    let router_options = router_options(options);
    let made = options.factory.make(
        kind,
        HttpProviderOptions {
            name: kind.as_str().to_owned(),
            base_url: account.base_url.clone(),
            credential: key.as_ref().map(|_| KEY_NAME.to_owned()),
            api_key: key,
            model: model.clone(),
            context_tokens,
            timeouts: router_options.timeouts,
            plaintext_key: account.plaintext_key,
        },
    )?;
    let router = Router::single(kind.as_str(), account, model, Some(made), router_options);
    let reason = format!("{because}: the conversation is sent to `{server}`{warning}");
    Ok(Selection { provider: Arc::new(router.clone()), router: Some(router), reason })
}

/// The window, if somebody has changed the setting. Otherwise the server may say, and failing that it is what models of this vendor have.
fn configured_window(config: &ModelConfig) -> Option<u32> {
    let untouched = config.context_tokens == ModelConfig::default().context_tokens;
    (!untouched).then_some(config.context_tokens)
}

fn because(config: &ModelConfig, kind: ProviderKind, has_server: bool, has_key: bool) -> String {
    let compatible = kind == ProviderKind::OpenaiCompatible;
    match (has_server, has_key) {
        _ if !compatible => format!("`model.provider` is `{}`", config.provider),
        (true, true) => "a base URL and a key are configured".to_owned(),
        (true, false) => "a base URL is configured, without a key".to_owned(),
        (false, true) => "a key is configured, without a base URL".to_owned(),
        (false, false) => format!("`model.provider` is `{}`, without a base URL or a key", config.provider),
    }
}

/// Where the conversation goes, and whether it can be read on the way.
fn shown(kind: ProviderKind, url: &str) -> Result<(String, &'static str), ModelError> {
    let usual_path = match kind {
        ProviderKind::Openai | ProviderKind::OpenaiCompatible => "/v1",
        ProviderKind::Anthropic | ProviderKind::Gemini | ProviderKind::Openrouter | ProviderKind::Ollama => "",
    };
    let base = BaseUrl::parse(url, usual_path, &["/chat/completions", "/models"])?;
    let warning = if base.is_encrypted() || base.is_loopback() { "" } else { ", unencrypted" };
    Ok((base.shown(), warning))
}

fn router_options(options: &SelectOptions<'_>) -> RouterOptions {
    let idle = Duration::from_secs(options.config.idle_timeout_seconds);
    let timeouts = Timeouts {
        connect: Duration::from_secs(options.config.connect_timeout_seconds),
        first_byte: idle,
        between_chunks: idle,
        ..Timeouts::default()
    };
    let usual = RouterOptions::new(Arc::clone(&options.factory), Arc::clone(&options.secrets));
    RouterOptions { timeouts, memory: options.memory.clone(), ..usual }
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
