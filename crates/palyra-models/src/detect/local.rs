//! Model servers, found by asking the ports they usually have on this machine and the addresses that variables name.
//!
//! A probe is one `GET` for the list of models: no redirect is followed, no proxy is used, no key and nothing of any conversation is in it. Only the
//! loopback address is asked unless a variable names another host. Whatever answers with anything but such a list is no offer; an
//! address that a variable names is offered all the same, with the word that nothing answers there.

use std::time::Duration;

use futures::future::join_all;
use palyra_common::{Environment, env_vars};
use reqwest::{Client, redirect};
use serde_json::Value;

use super::environment::own_url;
use super::offer::{Offer, is_loopback};
use crate::accounts::{Account, ModelName, ProviderKind};
use crate::wire::install_crypto_provider;

/// A server that is there answers within this; a person waits for it.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Most bytes of a list that are read.
const MAX_LIST: usize = 1 << 20;
/// Most models of one server that are shown.
const MAX_MODELS: usize = 100;
/// The name of Ollama's account.
const OLLAMA: &str = "ollama";

/// A place where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// A name for the account.
    name: &'static str,
    /// What it would be, for people.
    what: &'static str,
    /// What it would speak.
    kind: ProviderKind,
    /// The base address.
    url: String,
    /// The variable that names the address; without one it must be of this machine.
    variable: Option<&'static str>,
}

impl Place {
    const fn usual(name: &'static str, what: &'static str, kind: ProviderKind, url: String) -> Self {
        Self { name, what, kind, url, variable: None }
    }

    fn named(
        variable: &'static str,
        name: &'static str,
        what: &'static str,
        kind: ProviderKind,
        environment: &Environment,
    ) -> Option<Self> {
        own_url(kind, environment).map(|url| Self { name, what, kind, url, variable: Some(variable) })
    }

    /// Whether it may be asked. Over TLS nobody is: certificates are checked once the provider is used.
    fn may_be_asked(&self) -> bool {
        is_loopback(&self.url) || (self.variable.is_some() && self.url.starts_with("http://"))
    }
}

/// The usual places, after those that variables name.
pub(super) fn usual_places(environment: &Environment) -> Vec<Place> {
    const COMPATIBLE: ProviderKind = ProviderKind::OpenaiCompatible;
    let named = [
        Place::named(
            env_vars::OPENAI_BASE_URL,
            COMPATIBLE.as_str(),
            "an OpenAI-compatible server",
            COMPATIBLE,
            environment,
        ),
        Place::named(
            env_vars::ANTHROPIC_BASE_URL,
            ProviderKind::Anthropic.as_str(),
            "an Anthropic-compatible server",
            ProviderKind::Anthropic,
            environment,
        ),
        Place::named(env_vars::OLLAMA_HOST, OLLAMA, "Ollama", ProviderKind::Ollama, environment),
    ];
    let at = |port: u16| format!("http://127.0.0.1:{port}/v1");
    let usual = [
        Place::usual(OLLAMA, "Ollama", ProviderKind::Ollama, "http://127.0.0.1:11434".to_owned()),
        Place::usual("llama_cpp", "a llama.cpp server", COMPATIBLE, at(8080)),
        Place::usual("lm_studio", "LM Studio", COMPATIBLE, at(1234)),
        Place::usual("vllm", "vLLM", COMPATIBLE, at(8000)),
    ];
    let mut places: Vec<Place> = named.into_iter().flatten().collect();
    for place in usual {
        let same = |known: &Place| known.name == place.name || origin(&known.url) == origin(&place.url);
        if !places.iter().any(same) {
            places.push(place);
        }
    }
    places
}

/// Host and port of an address, with one name for this machine.
fn origin(url: &str) -> Option<(String, u16)> {
    let parsed = url.parse::<reqwest::Url>().ok()?;
    let host = if is_loopback(url) { "127.0.0.1".to_owned() } else { parsed.host_str()?.to_owned() };
    Some((host, parsed.port_or_known_default()?))
}

/// Asks these places, all at once, and offers those that have a list of models or that a variable names.
pub(super) async fn offers_of_places(places: &[Place]) -> Vec<Offer> {
    install_crypto_provider();
    let client = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(PATIENCE)
        .timeout(PATIENCE)
        .tls_certs_only([])
        .build();
    let Ok(client) = client else { return Vec::new() };
    let offers = join_all(places.iter().map(|place| offer(&client, place))).await;
    offers.into_iter().flatten().collect()
}

async fn offer(client: &Client, place: &Place) -> Option<Offer> {
    let base = place.url.trim_end_matches('/');
    let asked = if place.may_be_asked() { ask(client, place, base).await } else { None };
    // Nobody named a usual port, so one where nothing answers says nothing.
    if asked.is_none() && place.variable.is_none() {
        return None;
    }
    let is_usual = place.kind.usual_url() == Some(base);
    let base_url = (!is_usual).then(|| base.to_owned());
    let (models, found) = match asked {
        Some(models) => {
            let count = match models.len() {
                0 => "without any model yet".to_owned(),
                1 => "with one model".to_owned(),
                count => format!("with {count} models"),
            };
            (models, format!("{} answers at {base}, {count}", place.what))
        }
        None if place.may_be_asked() => (Vec::new(), format!("nothing answers at {base} with a list of models")),
        None => (Vec::new(), format!("{base} was not asked")),
    };
    let why = match place.variable {
        Some(variable) => format!("{variable} is set: {found}"),
        None => found,
    };
    // Its window is not written down: the server says it whenever a run begins, and may be started with another one.
    let account = Account { base_url, ..Account::new(place.kind) };
    Some(Offer::new(place.name, account, models, why))
}

/// The models that a place has; none if it has no list.
async fn ask(client: &Client, place: &Place, base: &str) -> Option<Vec<String>> {
    match place.kind {
        ProviderKind::Ollama => names(&get(client, &format!("{base}/api/tags")).await?, "models", "name"),
        ProviderKind::Anthropic => names(&get(client, &format!("{base}/v1/models")).await?, "data", "id"),
        _ => names(&get(client, &format!("{base}/models")).await?, "data", "id"),
    }
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
        Place::usual("here", "a server", kind, url)
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
    async fn only_this_machine_is_asked_unless_a_variable_names_a_host() {
        // A documentation address: a connection to it would not be refused but wait, and then this test would be slow.
        let place = at(ProviderKind::OpenaiCompatible, "http://192.0.2.1/v1".to_owned());
        assert!(offers_of_places(&[place]).await.is_empty());
        let nothing: [(&str, &str); 0] = [];
        assert!(usual_places(&Environment::from_pairs(nothing)).iter().all(|place| is_loopback(&place.url)));
        let secure = Environment::from_pairs([("OPENAI_BASE_URL", "https://gpu.example/v1")]);
        let named = usual_places(&secure).into_iter().find(|place| place.variable.is_some()).unwrap();
        assert!(!named.may_be_asked());
        let [offer] = offers_of_places(&[named]).await.try_into().unwrap();
        assert_eq!(offer.why, "OPENAI_BASE_URL is set: https://gpu.example/v1 was not asked");
    }

    #[tokio::test]
    async fn servers_that_variables_name_are_asked_without_the_key_and_only_once() {
        let server = ModelServer::start(Vec::new()).unwrap();
        server.offer_models(&["qwen3:8b"]);
        let base = server.base_url();
        let root = base.trim_end_matches("/v1").to_owned();
        let environment = Environment::from_pairs([
            ("OPENAI_BASE_URL", base.as_str()),
            ("OPENAI_API_KEY", "hunter2"),
            ("ANTHROPIC_BASE_URL", root.as_str()),
        ]);
        let offers = crate::detect::discover(&environment).await;
        let of = |name: &str| offers.iter().find(|offer| offer.name == name).unwrap();
        let compatible = of("openai_compatible");
        assert_eq!(compatible.command(), "palyra models set-default openai_compatible/qwen3:8b");
        assert_eq!(compatible.account.keys.len(), 1);
        assert!(compatible.why.starts_with("OPENAI_API_KEY is set together with OPENAI_BASE_URL; "), "{compatible:?}");
        let anthropic = of("anthropic");
        assert_eq!(anthropic.account.base_url.as_deref(), Some(root.as_str()));
        assert_eq!(anthropic.models, ["qwen3:8b"]);
        assert!(server.requests().iter().all(|request| !format!("{:?}", request.headers).contains("hunter2")));
    }

    #[test]
    fn the_ports_of_the_usual_servers_are_asked_once_each() {
        let nothing: [(&str, &str); 0] = [];
        let ports = |environment: &Environment| -> Vec<u16> {
            usual_places(environment).iter().filter_map(|place| origin(&place.url)).map(|(_, port)| port).collect()
        };
        assert_eq!(ports(&Environment::from_pairs(nothing)), [11434, 8080, 1234, 8000]);
        let named = Environment::from_pairs([("OPENAI_BASE_URL", "http://localhost:8080/v1/"), ("OLLAMA_HOST", ":9")]);
        assert_eq!(ports(&named), [8080, 9, 1234, 8000]);
    }

    #[test]
    fn what_is_no_list_is_no_offer() {
        for text in ["{}", "[]", r#"{"data": 1}"#, r#""x""#, r#"{"data": null}"#] {
            assert_eq!(names(&serde_json::from_str(text).unwrap(), "data", "id"), None, "{text}");
        }
        assert_eq!(names(&serde_json::json!({"data": [{"id": 1}, {}]}), "data", "id"), Some(Vec::new()));
    }
}
