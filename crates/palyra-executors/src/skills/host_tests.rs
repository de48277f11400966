use std::sync::Mutex;

use palyra_common::{Environment, SecretResolver as _, SecretString};
use palyra_egress::{Egress, EgressOptions};
use palyra_plugins_runtime::SecretUse;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::channels::NoChannels;
use super::*;

const TOKEN: &str = "hunter2-hunter2-hunter2";

struct Variables(Environment);

#[async_trait]
impl SecretSource for Variables {
    async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, String> {
        self.0.resolve(reference).map_err(|error| error.to_string())
    }
}

/// A server that keeps what it was sent and answers with it.
struct Echo {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
                        _ => break,
                    }
                }
                let text = String::from_utf8_lossy(&request).into_owned();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                    text.len()
                );
                kept.lock().unwrap().push(text);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { port, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn rule(&self) -> HttpGrant {
        HttpGrant { rule: format!("GET http://127.0.0.1:{}/allowed", self.port) }
    }

    fn last(&self) -> String {
        self.seen.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

fn host() -> SkillHost {
    let secrets = Arc::new(Variables(Environment::from_pairs([("HOOK_TOKEN", TOKEN)])));
    let options = EgressOptions { secrets: secrets.clone(), ..EgressOptions::default() };
    let services = SkillServices {
        client: Egress::new(options).unwrap().client(),
        secrets,
        storage: Arc::new(SkillStorage::in_memory().unwrap()),
        channels: Arc::new(NoChannels),
        private_hosts: vec![PrivateHost::parse("127.0.0.1").unwrap()],
    };
    let settings = SkillSettings {
        config: BTreeMap::new(),
        secrets: BTreeMap::from([("token".to_owned(), "env:HOOK_TOKEN".parse().unwrap())]),
    };
    SkillHost::new("hello", "a test", services, Arc::new(settings))
}

fn request(url: String, credentials: Vec<Credential>) -> HttpRequest {
    HttpRequest { method: "GET".to_owned(), url, headers: Vec::new(), body: Vec::new(), credentials }
}

fn secret(name: &str, hosts: &[&str]) -> SecretGrant {
    SecretGrant {
        name: name.to_owned(),
        usage: SecretUse::Bind,
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
    }
}

fn bearer(secret: SecretGrant) -> Credential {
    Credential { secret, placement: Placement::Bearer }
}

#[tokio::test]
async fn a_request_goes_where_its_rule_says_and_nowhere_else() {
    let server = Echo::start().await;
    let answer = host().http(&server.rule(), request(server.url("/allowed?x=1"), Vec::new())).await.unwrap();
    assert_eq!(answer.status, 200);
    for url in [server.url("/other"), server.url("/allowed/../other"), "http://127.0.0.2/allowed".to_owned()] {
        let refused = host().http(&server.rule(), request(url.clone(), Vec::new())).await;
        assert!(matches!(refused, Err(HostFailure::Denied(_) | HostFailure::Invalid(_))), "{url}: {refused:?}");
    }
    let mut post = request(server.url("/allowed"), Vec::new());
    post.method = "POST".to_owned();
    assert!(matches!(host().http(&server.rule(), post).await, Err(HostFailure::Denied(_))));
    assert_eq!(server.seen.lock().unwrap().len(), 1, "a refused request arrived");
}

#[tokio::test]
async fn a_secret_reaches_the_server_and_never_the_guest() {
    let server = Echo::start().await;
    for (placement, sent) in [
        (Placement::Bearer, format!("Bearer {TOKEN}")),
        (Placement::Header("x-api-key".to_owned()), TOKEN.to_owned()),
        (Placement::Basic("ada".to_owned()), format!("Basic {}", STANDARD.encode(format!("ada:{TOKEN}")))),
    ] {
        let credential = Credential { secret: secret("token", &[]), placement };
        let answer = host().http(&server.rule(), request(server.url("/allowed"), vec![credential])).await.unwrap();
        assert!(server.last().contains(&sent), "{} was not sent", server.last());
        let echoed = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!echoed.contains(TOKEN), "the guest reads {echoed}");
    }
}

#[tokio::test]
async fn a_secret_stays_here_where_it_does_not_belong() {
    let server = Echo::start().await;
    let url = || server.url("/allowed");
    let denied = |answer: Result<HttpResponse, HostFailure>| matches!(answer, Err(HostFailure::Denied(_)));
    // Not for this host, never bound by the operator, in the clear to another machine.
    assert!(denied(host().http(&server.rule(), request(url(), vec![bearer(secret("token", &["api.example"]))])).await));
    assert!(denied(host().http(&server.rule(), request(url(), vec![bearer(secret("other", &[]))])).await));
    let plain = HttpGrant { rule: "GET http://plain.example".to_owned() };
    let there = request("http://plain.example/".to_owned(), vec![bearer(secret("token", &[]))]);
    assert!(denied(host().http(&plain, there).await));
    // A header that the guest set itself is not joined by a secret.
    let mut set = request(url(), vec![bearer(secret("token", &[]))]);
    set.headers.push(("Authorization".to_owned(), b"Bearer mine".to_vec()));
    assert!(matches!(host().http(&server.rule(), set).await, Err(HostFailure::Invalid(_))));
    assert!(server.seen.lock().unwrap().is_empty(), "{:?}", server.seen);
}

#[tokio::test]
async fn storage_and_channels_are_the_skills_own() {
    let host = host();
    let space = StorageGrant { name: "notes".to_owned(), max_bytes: 10, max_keys: 2 };
    let set = |key: &str, value: &str| StorageRequest::Set { key: key.to_owned(), value: value.as_bytes().to_vec() };
    assert_eq!(host.storage(&space, set("a", "1")).await, Ok(StorageAnswer::Done));
    assert!(matches!(host.storage(&space, set("b", "far too much")).await, Err(HostFailure::Exhausted(_))));
    assert!(matches!(host.storage(&space, set("", "1")).await, Err(HostFailure::Invalid(_))));
    let channel = ChannelGrant { name: "nobody".to_owned() };
    assert!(matches!(host.channel_send(&channel, "hi".to_owned()).await, Err(HostFailure::Denied(_))));
}

#[tokio::test]
async fn a_value_is_revealed_only_where_it_is_known() {
    assert_eq!(host().reveal(&secret("token", &[])).await.unwrap().expose(), TOKEN.as_bytes());
    assert!(matches!(host().reveal(&secret("other", &[])).await, Err(HostFailure::Denied(_))));
}
