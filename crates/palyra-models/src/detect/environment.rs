//! Keys and addresses that a person already has in the environment. Only names are looked at; no value is kept.

use palyra_common::{Environment, SecretRef, env_vars};

use super::offer::Offer;
use crate::accounts::{Account, AccountKey, ProviderKind};

/// The port Ollama listens on unless told otherwise.
const OLLAMA_PORT: u16 = 11_434;

/// The kinds whose keys are looked for.
const WITH_KEYS: [ProviderKind; 4] =
    [ProviderKind::Anthropic, ProviderKind::Openai, ProviderKind::Gemini, ProviderKind::Openrouter];

/// What the environment offers. Nothing is sent anywhere.
pub(crate) fn offers_of_environment(environment: &Environment) -> Vec<Offer> {
    WITH_KEYS.into_iter().filter_map(|kind| with_key(kind, environment)).collect()
}

/// Where a vendor's own variable says that its server is.
pub(crate) fn own_url(kind: ProviderKind, environment: &Environment) -> Option<String> {
    let given = |name: &str| {
        environment.text(name).map(|url| url.trim().trim_end_matches('/').to_owned()).filter(|url| !url.is_empty())
    };
    match kind {
        ProviderKind::Ollama => ollama_url(environment),
        ProviderKind::Anthropic => given(env_vars::ANTHROPIC_BASE_URL),
        ProviderKind::OpenaiCompatible => given(env_vars::OPENAI_BASE_URL),
        ProviderKind::Openai | ProviderKind::Gemini | ProviderKind::Openrouter => None,
    }
}

/// The first variable that holds a key for this kind.
pub(crate) fn key_in(kind: ProviderKind, environment: &Environment) -> Option<SecretRef> {
    let set = |name: &&&str| environment.text(name).is_some_and(|value| !value.trim().is_empty());
    kind.key_variables().iter().find(set).map(|name| SecretRef::Env((*name).to_owned()))
}

fn with_key(kind: ProviderKind, environment: &Environment) -> Option<Offer> {
    let key = key_in(kind, environment)?;
    let mut account = Account::new(kind);
    let mut why = format!("{} is set", key.to_string().trim_start_matches("env:"));
    let mut name = kind.as_str();
    if kind == ProviderKind::Anthropic
        && let Some(url) = own_url(kind, environment)
    {
        account.base_url = Some(url);
        why.push_str(" together with ANTHROPIC_BASE_URL");
    }
    if kind == ProviderKind::Openai
        && let Some(url) = own_url(ProviderKind::OpenaiCompatible, environment)
    {
        // The key belongs to that server and to no other.
        account = Account { base_url: Some(url), ..Account::new(ProviderKind::OpenaiCompatible) };
        why.push_str(" together with OPENAI_BASE_URL");
        name = ProviderKind::OpenaiCompatible.as_str();
    }
    account.keys = vec![AccountKey { name: "main".to_owned(), key }];
    let models: Vec<String> = match environment.text(env_vars::OPENAI_MODEL) {
        Some(model) if kind == ProviderKind::Openai => vec![model.to_owned()],
        _ => Vec::new(),
    };
    Some(Offer::new(name, account, models, why))
}

/// Where `OLLAMA_HOST` says that Ollama listens. It is written in many ways: `host`, `host:port`, `:port`, `http://host:port`; an
/// address to listen on everywhere means this machine to a caller.
fn ollama_url(environment: &Environment) -> Option<String> {
    let given = environment.text(env_vars::OLLAMA_HOST)?.trim().trim_end_matches('/');
    let (scheme, rest) = given.split_once("://").unwrap_or(("http", given));
    let rest = if rest.is_empty() || rest.starts_with(':') { format!("127.0.0.1{rest}") } else { rest.to_owned() };
    let mut url: reqwest::Url = format!("{scheme}://{rest}").parse().ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if matches!(url.host_str(), Some("0.0.0.0" | "[::]")) {
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    // A scheme of its own means its own port; without one it is Ollama's.
    if url.port().is_none() && !given.contains("://") {
        url.set_port(Some(OLLAMA_PORT)).ok()?;
    }
    Some(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_offered_by_name_and_never_shown() {
        let environment = Environment::from_pairs([
            ("ANTHROPIC_API_KEY", "sk-hunter2"),
            ("GOOGLE_API_KEY", "hunter2"),
            ("OPENROUTER_API_KEY", "  "),
        ]);
        let offers = offers_of_environment(&environment);
        let lines: Vec<String> =
            offers.iter().map(|offer| format!("{}: {}; {}", offer.why, offer.sends, offer.command())).collect();
        assert_eq!(
            lines,
            [
                "ANTHROPIC_API_KEY is set: conversations would be sent to `https://api.anthropic.com`; \
                 palyra models set-default anthropic/claude-sonnet-4-5",
                "GOOGLE_API_KEY is set: conversations would be sent to `https://generativelanguage.googleapis.com`; \
                 palyra models set-default gemini/gemini-2.5-pro",
            ]
        );
        assert!(!format!("{offers:?}{}", serde_json::to_string(&offers).unwrap()).contains("hunter2"));
    }

    #[test]
    fn a_key_for_another_server_is_not_offered_for_openai() {
        let environment = Environment::from_pairs([
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_BASE_URL", "http://gateway.example/v1"),
            ("OPENAI_MODEL", "m"),
        ]);
        let [offer] = offers_of_environment(&environment).try_into().unwrap();
        assert_eq!(offer.account.kind, ProviderKind::OpenaiCompatible);
        assert_eq!(offer.sends, "conversations would be sent to `http://gateway.example/v1`, unencrypted");
        assert_eq!(offer.command(), "palyra models set-default openai_compatible/m");
    }

    #[test]
    fn the_many_ways_to_write_where_ollama_listens() {
        for (given, expected) in [
            ("127.0.0.1:11434", Some("http://127.0.0.1:11434")),
            ("0.0.0.0", Some("http://127.0.0.1:11434")),
            (":9999", Some("http://127.0.0.1:9999")),
            ("gpu.lan", Some("http://gpu.lan:11434")),
            ("http://gpu.lan:1/", Some("http://gpu.lan:1")),
            ("https://ollama.example", Some("https://ollama.example")),
            ("ftp://x", None),
            ("not a host", None),
        ] {
            assert_eq!(ollama_url(&Environment::from_pairs([("OLLAMA_HOST", given)])).as_deref(), expected, "{given}");
        }
    }
}
