//! Which provider a configuration means, and why.
//!
//! Nothing is sent anywhere by choosing. A network provider is chosen only when somebody named a server or a key; the reason
//! says in plain words where the conversation will go, so that a surface can show it before the first call.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::SecretString;
use palyra_common::config::{ModelConfig, ModelProviderChoice};

use crate::error::{ModelError, ModelErrorClass};
use crate::offline::OfflineProvider;
use crate::openai_compatible::{OpenAiCompatible, OpenAiCompatibleOptions};
use crate::provider::ModelProvider;
use crate::scripted::ScriptedProvider;

/// Where a key without a server belongs.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The chosen provider.
pub struct Selection {
    /// What answers.
    pub provider: Arc<dyn ModelProvider>,
    /// Why it was chosen and where the conversation goes, for people, in one line.
    pub reason: String,
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("provider", &self.provider.describe()).field("reason", &self.reason).finish()
    }
}

/// Chooses by configuration. `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL` are part of it already; the key comes
/// beside it because the configuration only holds a reference to it.
pub fn select(config: &ModelConfig, api_key: Option<SecretString>) -> Result<Selection, ModelError> {
    let base_url = config.base_url.as_deref().filter(|url| !url.trim().is_empty());
    let api_key = api_key.filter(|key| !key.expose().trim().is_empty());
    match config.provider {
        ModelProviderChoice::Offline => Ok(offline("`model.provider` is `offline`")),
        ModelProviderChoice::Scripted => scripted(config.script.as_deref()),
        ModelProviderChoice::OpenaiCompatible => openai_compatible(config, base_url, api_key),
        ModelProviderChoice::Auto if base_url.is_some() || api_key.is_some() => {
            openai_compatible(config, base_url, api_key)
        }
        ModelProviderChoice::Auto => {
            Ok(offline("neither OPENAI_BASE_URL nor OPENAI_API_KEY is set and no model is configured"))
        }
    }
}

fn offline(because: &str) -> Selection {
    let reason = format!("{because}: the offline planner answers, which is not a language model; nothing is sent");
    Selection { provider: Arc::new(OfflineProvider::new()), reason }
}

fn scripted(script: Option<&Path>) -> Result<Selection, ModelError> {
    let path = script.ok_or_else(|| {
        ModelError::new(ModelErrorClass::Permanent, "`model.provider` is `scripted` but `model.script` names no file")
    })?;
    let provider = ScriptedProvider::from_file(path)?;
    let reason = format!("`model.provider` is `scripted`: answers come from `{}`; nothing is sent", path.display());
    Ok(Selection { provider: Arc::new(provider), reason })
}

fn openai_compatible(
    config: &ModelConfig,
    base_url: Option<&str>,
    api_key: Option<SecretString>,
) -> Result<Selection, ModelError> {
    let because = match (base_url, &api_key) {
        (Some(_), Some(_)) => "a base URL and a key are configured",
        (Some(_), None) => "a base URL is configured, without a key",
        (None, Some(_)) => "a key is configured, without a base URL",
        (None, None) => "`model.provider` is `openai_compatible`, without a base URL or a key",
    };
    let options = OpenAiCompatibleOptions {
        api_key,
        model: config.name.clone(),
        context_tokens: config.context_tokens,
        connect_timeout: Duration::from_secs(config.connect_timeout_seconds),
        idle_timeout: Duration::from_secs(config.idle_timeout_seconds),
        ..OpenAiCompatibleOptions::new(base_url.unwrap_or(DEFAULT_BASE_URL))
    };
    let provider = OpenAiCompatible::new(options)?;
    let server = provider.shown_base_url();
    let warning = if provider.sends_in_the_clear() { ", unencrypted" } else { "" };
    let reason = format!("{because}: the conversation is sent to `{server}`{warning}");
    Ok(Selection { provider: Arc::new(provider), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(provider: ModelProviderChoice, base_url: Option<&str>) -> ModelConfig {
        ModelConfig { provider, base_url: base_url.map(str::to_owned), ..ModelConfig::default() }
    }

    fn key() -> Option<SecretString> {
        Some(SecretString::from("sk-hunter2\n".to_owned()))
    }

    #[test]
    fn a_network_provider_needs_somebody_to_name_a_server_or_a_key() {
        use ModelProviderChoice::{Auto, Offline, OpenaiCompatible};
        let table = [
            (Auto, None, None, "offline", "nothing is sent"),
            (Auto, Some(" "), Some(SecretString::from(" ".to_owned())), "offline", "nothing is sent"),
            (Auto, Some("http://127.0.0.1:1"), None, "openai_compatible", "sent to `http://127.0.0.1:1/v1`"),
            (Auto, None, key(), "openai_compatible", "sent to `https://api.openai.com/v1`"),
            (Auto, Some("http://example.com"), key(), "openai_compatible", "`http://example.com/v1`, unencrypted"),
            (Offline, Some("http://h"), key(), "offline", "nothing is sent"),
            (OpenaiCompatible, Some("https://h/v1/"), None, "openai_compatible", "sent to `https://h/v1`"),
        ];
        for (choice, base_url, api_key, name, reason) in table {
            let selection = select(&config(choice, base_url), api_key).unwrap();
            assert_eq!(selection.provider.name(), name, "{selection:?}");
            assert!(selection.reason.contains(reason), "{selection:?}");
            assert!(!format!("{selection:?}").contains("hunter2"));
        }
    }

    #[test]
    fn what_cannot_work_is_refused_at_once() {
        assert!(select(&config(ModelProviderChoice::Auto, Some("nonsense")), None).is_err());
        assert!(select(&config(ModelProviderChoice::Scripted, None), None).is_err());
        let broken = Some(SecretString::from("sk-\u{1}x".to_owned()));
        assert_eq!(
            select(&config(ModelProviderChoice::Auto, None), broken).unwrap_err().class,
            crate::ModelErrorClass::Auth
        );
    }
}
