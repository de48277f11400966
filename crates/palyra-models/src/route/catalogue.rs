//! What the servers say they offer: which models, and how much fits into a call of each.
//!
//! A server is asked when a run needs to know, at most once in a while, and never while a call waits. A server of one's own may be started again with
//! another window at any time, so what it said counts for a moment only. One that does not answer in time, or has no list, is left alone for a while;
//! then everything is as if it had not been asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use palyra_common::Timestamp;

use super::pace::Pace;
use super::pool::Pool;
use crate::accounts::{Account, ModelName, ProviderKind};
use crate::detect::is_loopback;
use crate::model_entry::ModelEntry;

/// Longest wait for a list. Whoever begins a run waits for it once.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a list counts for windows and first models.
const FRESH: Duration = Duration::from_secs(3600);
/// How long a server that gave none is left alone.
const PAUSE: Duration = Duration::from_secs(60);
/// How long the windows of a server count that somebody may start again with another one.
const RESTARTABLE: Duration = Duration::from_secs(60);
/// The same for a server on this machine, which is asked in no time. Several runs that begin together ask once.
const LOCAL: Duration = Duration::from_secs(1);
/// A list that is younger is believed when it does not have a model.
pub(super) const JUST_READ: Duration = Duration::from_secs(10);

/// The lists of all accounts.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    lists: Mutex<BTreeMap<String, List>>,
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct List {
    at: Timestamp,
    /// None if the server gave none.
    entries: Option<Arc<[ModelEntry]>>,
}

impl Catalogue {
    /// How much fits into a call of this model, as its server last said.
    pub(super) fn window(&self, name: &ModelName) -> Option<u32> {
        let list = self.locked().get(&name.provider)?.entries.clone()?;
        list.iter().find(|entry| entry.id == name.model)?.context_tokens
    }

    /// The model that a server takes where none is named.
    pub(super) fn first_model(&self, provider: &str) -> Option<String> {
        let list = self.locked().get(provider)?.entries.clone()?;
        list.iter().map(|entry| entry.id.clone()).find(|id| !id.is_empty())
    }

    /// The list of an account, no older than this; none if it has none.
    pub(super) async fn entries(
        &self,
        pool: &Arc<Pool>,
        pace: &Arc<dyn Pace>,
        (provider, key): (&str, Option<&str>),
        oldest: Duration,
    ) -> Option<Arc<[ModelEntry]>> {
        // Several runs that begin together ask once.
        let _asking = self.asking.lock().await;
        let known = self.locked().get(provider).cloned();
        if let Some(List { at, entries }) = known {
            let age = pace.now().since(at);
            let fresh = if entries.is_some() { age < FRESH.min(oldest) } else { age < PAUSE };
            if fresh {
                return entries;
            }
        }
        let asked = async {
            let mut listed = pool.get(provider, key).await.ok()?.models().await.ok()?;
            // A name is shown to people, and no model has one with control characters.
            listed.retain(|entry| !entry.id.chars().any(char::is_control));
            Some(listed)
        };
        let entries: Option<Arc<[ModelEntry]>> =
            tokio::time::timeout(PATIENCE, asked).await.ok().flatten().map(Into::into);
        self.locked().insert(provider.to_owned(), List { at: pace.now(), entries: entries.clone() });
        entries
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, List>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether servers of this kind say how much fits into a call.
pub(super) const fn says_windows(kind: ProviderKind) -> bool {
    match kind {
        ProviderKind::OpenaiCompatible | ProviderKind::Ollama | ProviderKind::Openrouter => true,
        // Their windows are known, or not said.
        ProviderKind::Openai | ProviderKind::Anthropic | ProviderKind::Gemini => false,
    }
}

/// How long what a server of this kind at this address says of its windows counts.
pub(super) fn windows_count_for(kind: ProviderKind, destination: &str) -> Duration {
    match kind {
        ProviderKind::OpenaiCompatible | ProviderKind::Ollama if is_loopback(destination) => LOCAL,
        ProviderKind::OpenaiCompatible | ProviderKind::Ollama => RESTARTABLE,
        ProviderKind::Openrouter | ProviderKind::Openai | ProviderKind::Anthropic | ProviderKind::Gemini => FRESH,
    }
}

/// How much fits into a call: what somebody configured or models of the vendor usually have, but never more than the server says it has.
#[must_use]
pub fn window(account: &Account, model: &str, said: Option<u32>) -> u32 {
    let said = said.filter(|_| says_windows(account.kind));
    match (account.configured_window(model), said) {
        (Some(configured), Some(said)) => configured.min(said),
        // Its window is what it is asked for, as far as the model has as much.
        (None, Some(said)) if account.kind == ProviderKind::Ollama => account.kind.usual_window().min(said),
        (None, Some(said)) => said,
        (Some(configured), None) => configured,
        (None, None) => account.kind.usual_window(),
    }
}

/// Whether a list has a model, in one of the ways in which a vendor lets it be named.
pub(super) fn offers(entries: &[ModelEntry], kind: ProviderKind, model: &str) -> bool {
    let listed = |name: &str| entries.iter().any(|entry| entry.id == name);
    let begins = |mark: char| {
        entries.iter().any(|entry| entry.id.strip_prefix(model).is_some_and(|rest| rest.starts_with(mark)))
    };
    match kind {
        ProviderKind::OpenaiCompatible => listed(model),
        // `qwen3` is `qwen3:latest`.
        ProviderKind::Ollama => listed(model) || listed(&format!("{model}:latest")),
        // `:free`, `:nitro` and others say how a listed model is to be served.
        ProviderKind::Openrouter => listed(model) || model.rsplit_once(':').is_some_and(|(name, _)| listed(name)),
        ProviderKind::Gemini => {
            model.starts_with("tunedModels/")
                || model.ends_with("-latest")
                || listed(model.trim_start_matches("models/"))
                || begins('-')
        }
        // Names without a date stand for the newest.
        ProviderKind::Openai | ProviderKind::Anthropic => {
            listed(model) || model.starts_with("ft:") || model.ends_with("-latest") || begins('-')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_let_their_models_be_named_in_more_ways_than_they_list() {
        use ProviderKind::{Anthropic, Gemini, Ollama, Openai, OpenaiCompatible, Openrouter};
        let table = [
            (OpenaiCompatible, "qwen3.gguf", "qwen3.gguf", true),
            (OpenaiCompatible, "qwen3.gguf", "qwen3", false),
            (Ollama, "qwen3:latest", "qwen3", true),
            (Ollama, "qwen3:8b", "qwen3", false),
            (Openrouter, "meta/llama", "meta/llama:free", true),
            (Openrouter, "meta/llama", "meta/lama", false),
            (Anthropic, "claude-sonnet-4-5-20250929", "claude-sonnet-4-5", true),
            (Anthropic, "claude-sonnet-4-5-20250929", "claude-sonnet", true),
            (Anthropic, "claude-sonnet-4-5-20250929", "claude-sonet-4-5", false),
            (Openai, "gpt-5", "gpt-5", true),
            (Openai, "gpt-5", "gpt5", false),
            (Gemini, "gemini-2.5-pro", "models/gemini-2.5-pro", true),
            (Gemini, "gemini-2.5-pro", "gemini-flash-latest", true),
        ];
        for (kind, listed, model, expected) in table {
            assert_eq!(offers(&[ModelEntry::named(listed)], kind, model), expected, "{kind} {listed} {model}");
        }
    }
}
