//! Model servers on this machine, found by asking the ports they usually have.
//!
//! A probe is one `GET` for the list of models, to the loopback address and nowhere else: no redirect is followed, no proxy is used,
//! nothing of any conversation is in it. Whatever answers with anything but such a list is no offer.

use std::time::Duration;

use futures::future::join_all;
use palyra_common::Environment;
use reqwest::{Client, redirect};
use serde_json::Value;

use super::environment::ollama_url;
use super::offer::{Offer, is_loopback};
use crate::accounts::{Account, ModelName, ProviderKind};
use crate::wire::install_crypto_provider;

/// A server that is there answers within this; a person waits for it.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Most bytes of a list that are read.
const MAX_LIST: usize = 1 << 20;
/// Most models of one server that are shown.
const MAX_MODELS: usize = 100;

/// A place where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A name for the account.
    pub name: String,
    /// What it would be, for people.
    pub what: String,
    /// What it would speak.
    pub kind: ProviderKind,
    /// The base address, which must be of this machine.
    pub url: String,
}

/// The usual places.
#[must_use]
pub fn usual_places(environment: &Environment) -> Vec<Place> {
    let place = |name: &str, what: &str, kind, url: &str| Place {
        name: name.to_owned(),
        what: what.to_owned(),
        kind,
        url: url.to_owned(),
    };
    let ollama = ollama_url(environment).filter(|url| is_loopback(url));
    let ollama = ollama.as_deref().unwrap_or("http://127.0.0.1:11434");
    vec![
        place("ollama", "Ollama", ProviderKind::Ollama, ollama),
        place("llama_cpp", "a llama.cpp server", ProviderKind::OpenaiCompatible, "http://127.0.0.1:8080/v1"),
        place("lm_studio", "LM Studio", ProviderKind::OpenaiCompatible, "http://127.0.0.1:1234/v1"),
    ]
}

/// Asks these places, all at once, and offers those that have a list of models.
pub async fn offers_of_places(places: &[Place]) -> Vec<Offer> {
    install_crypto_provider();
    let client = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(PATIENCE)
        .timeout(PATIENCE)
        .tls_certs_only([])
        .build();
    let Ok(client) = client else { return Vec::new() };
    let asked = places.iter().filter(|place| is_loopback(&place.url)).map(|place| ask(&client, place));
    join_all(asked).await.into_iter().flatten().collect()
}

async fn ask(client: &Client, place: &Place) -> Option<Offer> {
    let base = place.url.trim_end_matches('/');
    let models = match place.kind {
        ProviderKind::Ollama => names(&get(client, &format!("{base}/api/tags")).await?, "models", "name")?,
        _ => names(&get(client, &format!("{base}/models")).await?, "data", "id")?,
    };
    let is_usual = place.kind.usual_url() == Some(base);
    let base_url = (!is_usual).then(|| base.to_owned());
    let context_tokens = match place.kind {
        ProviderKind::OpenaiCompatible => window(client, base).await,
        _ => None,
    };
    let account = Account { base_url, context_tokens, ..Account::new(place.kind) };
    let count = match models.len() {
        0 => "without any model yet".to_owned(),
        1 => "with one model".to_owned(),
        count => format!("with {count} models"),
    };
    let why = format!("{} answers at {base}, {count}", place.what);
    Some(Offer::new(&place.name, account, models, why))
}

/// The window that a llama.cpp server was started with; others do not say.
async fn window(client: &Client, base: &str) -> Option<u32> {
    let root = base.strip_suffix("/v1").unwrap_or(base);
    let props = get(client, &format!("{root}/props")).await?;
    let tokens = props.get("default_generation_settings")?.get("n_ctx")?.as_u64()?;
    u32::try_from(tokens).ok().filter(|tokens| *tokens >= 1_024)
}

async fn get(client: &Client, url: &str) -> Option<Value> {
    let mut response = client.get(url).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len().saturating_add(chunk.len()) > MAX_LIST {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).ok()
}

/// The names in a list of models; none if it is no such list. Names that could not be asked for are left out.
fn names(document: &Value, list: &str, field: &str) -> Option<Vec<String>> {
    let entries = document.get(list)?.as_array()?;
    let names = entries.iter().filter_map(|entry| entry.get(field).and_then(Value::as_str));
    let usable = names.filter(|name| format!("x/{name}").parse::<ModelName>().is_ok());
    Some(usable.take(MAX_MODELS).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ModelServer;

    fn at(kind: ProviderKind, url: String) -> Place {
        Place { name: "here".to_owned(), what: "a server".to_owned(), kind, url }
    }

    #[tokio::test]
    async fn a_server_with_models_is_offered_and_nothing_but_the_list_was_asked_for() {
        let server = ModelServer::start(Vec::new()).unwrap();
        server.offer_models(&["qwen3:8b", "llava", "no good name"]);
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let places = [
            at(ProviderKind::OpenaiCompatible, server.base_url()),
            at(ProviderKind::OpenaiCompatible, format!("http://{nobody}/v1")),
            at(ProviderKind::Ollama, server.base_url()),
        ];
        let [offer] = offers_of_places(&places).await.try_into().unwrap();
        assert_eq!(offer.models, ["qwen3:8b", "llava"]);
        assert_eq!(offer.command(), "palyra models set-default here/qwen3:8b");
        assert!(offer.why.ends_with("with 2 models") && offer.sends.ends_with("on this machine"), "{offer:?}");
        for request in server.requests() {
            assert_eq!((request.method.as_str(), &request.body), ("GET", &Value::Null));
        }
    }

    #[tokio::test]
    async fn only_this_machine_is_asked() {
        // A documentation address: a connection to it would not be refused but wait, and then this test would be slow.
        let place = at(ProviderKind::OpenaiCompatible, "http://192.0.2.1/v1".to_owned());
        assert!(offers_of_places(&[place]).await.is_empty());
        let environment = Environment::from_pairs([("OLLAMA_HOST", "gpu.lan")]);
        assert!(usual_places(&environment).iter().all(|place| is_loopback(&place.url)));
    }

    #[test]
    fn what_is_no_list_is_no_offer() {
        for text in ["{}", "[]", r#"{"data": 1}"#, r#""x""#, r#"{"data": null}"#] {
            assert_eq!(names(&serde_json::from_str(text).unwrap(), "data", "id"), None, "{text}");
        }
        assert_eq!(names(&serde_json::json!({"data": [{"id": 1}, {}]}), "data", "id"), Some(Vec::new()));
    }
}
