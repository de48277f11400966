//! Variables that say something about models. Names alone are looked at; no value is kept.

use std::collections::BTreeSet;

use palyra_common::{Environment, SecretRef, env_vars};

use crate::accounts::Accounts;

/// Variables that count without being referred to.
const KNOWN: [&str; 9] = [
    env_vars::OPENAI_BASE_URL,
    env_vars::OPENAI_API_KEY,
    env_vars::OPENAI_MODEL,
    env_vars::ANTHROPIC_API_KEY,
    env_vars::ANTHROPIC_BASE_URL,
    env_vars::GEMINI_API_KEY,
    env_vars::GOOGLE_API_KEY,
    env_vars::OPENROUTER_API_KEY,
    env_vars::OLLAMA_HOST,
];

/// Names of the variables that are set in this environment and that count: those of the vendors, and those that keys of accounts refer to.
#[must_use]
pub fn set_variables(environment: &Environment, accounts: &Accounts) -> Vec<String> {
    let keys = accounts.providers.values().flat_map(|account| &account.keys);
    let referred = keys.filter_map(|key| match &key.key {
        SecretRef::Env(name) => Some(name.as_str()),
        SecretRef::Vault { .. } | SecretRef::File(_) | SecretRef::Exec(_) => None,
    });
    let names: BTreeSet<&str> = KNOWN.into_iter().chain(referred).collect();
    let is_set = |name: &&str| environment.text(name).is_some_and(|value| !value.trim().is_empty());
    names.into_iter().filter(is_set).map(str::to_owned).collect()
}
