//! The secret that the guest never sees: put in for the named host alone, and not handed back by any echo.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use palyra_egress::{
    CredentialBinding, CredentialPlace, CredentialTransport, EgressGrant, FetchRequest, Intercept, RefusalReason,
};

use crate::harness::{Raw, SECRET, World, grant, refusal_of, status_of};

const PLACEHOLDER: &str = "palyra-placeholder-7";

/// Fails if what a client heard holds the secret in any spelling.
fn assert_unseen(what: &str, heard: &[u8]) {
    let text = String::from_utf8_lossy(heard);
    let core = |encoded: String| encoded[4..encoded.len() - 4].to_owned();
    let mut forms = vec![
        SECRET.to_owned(),
        SECRET.to_ascii_lowercase(),
        hex::encode(SECRET),
        hex::encode_upper(SECRET),
        serde_json::to_string(SECRET).unwrap().trim_matches('"').to_owned(),
        SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        SECRET.bytes().map(|byte| format!("\\u00{byte:02x}")).collect(),
        SECRET.bytes().map(|byte| format!("&#{byte};")).collect(),
        SECRET.chars().flat_map(|letter| [letter, '\0']).collect(),
    ];
    for before in ["", "x", "xx"] {
        forms.push(core(STANDARD.encode(format!("{before}{SECRET}"))));
        forms.push(core(URL_SAFE_NO_PAD.encode(format!("{before}{SECRET}"))));
    }
    for form in forms {
        assert!(!text.contains(&form), "{what} shows the secret as {form}: {text}");
    }
}

fn bound(base: &str, place: CredentialPlace, template: &str, transport: CredentialTransport) -> EgressGrant {
    let mut grant = grant(&[&base.replace("other", "echo"), &base.replace("echo", "other")])
        .private_host("loopback:echo.example")
        .unwrap()
        .private_host("loopback:other.example")
        .unwrap();
    let mut binding =
        CredentialBinding::header("echo.example", "Authorization", "env:TEST_TOKEN".parse().unwrap(), PLACEHOLDER)
            .unwrap();
    (binding.place, binding.template, binding.transport) = (place, template.to_owned(), transport);
    grant.credentials.push(binding);
    grant
}

async fn world() -> World {
    let world = World::on_loopback().await;
    for name in ["echo.example", "other.example"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    world
}

const ECHOES: [&str; 13] = [
    "/echo",
    "/echo/header",
    "/echo/base64",
    "/echo/hex",
    "/echo/percent",
    "/echo/json",
    "/echo/chunks",
    "/echo/location",
    "/echo/gzip",
    "/echo/unicode",
    "/echo/entities",
    "/echo/utf16",
    "/echo/coded",
];

#[tokio::test]
async fn no_echo_hands_the_secret_back() {
    let world = world().await;
    let base = format!("http://echo.example:{}", world.servers.http.port());
    let host = base.trim_start_matches("http://");
    for place in [CredentialPlace::Header("Authorization".into()), CredentialPlace::Query("key".into())] {
        let template = if matches!(place, CredentialPlace::Header(_)) { "Bearer {}" } else { "{}" };
        let grant = bound(&base, place.clone(), template, CredentialTransport::Plain);
        let proxy = world.proxy(grant.clone()).await;
        let encoded: String = SECRET
            .bytes()
            .map(
                |byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") },
            )
            .collect();
        for path in ECHOES {
            let heard = Raw::ask(proxy.address(), format!("GET {base}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_unseen(path, &heard);
            assert!(status_of(&heard) > 0, "{path}: {}", String::from_utf8_lossy(&heard));
            let said = world.servers.visits().await;
            let said = String::from_utf8_lossy(&said[0].said).into_owned();
            assert!(
                said.contains(&format!("Bearer {SECRET}")) || said.contains(&format!("key={encoded}")),
                "the host got it: {said}"
            );
            match world.egress.client().send(&grant, FetchRequest::get(format!("{base}{path}"))).await {
                Ok(answer) => {
                    assert_unseen(path, &answer.body);
                    assert_unseen(path, format!("{answer:?}").as_bytes());
                }
                Err(error) => assert_unseen(path, format!("{error} {error:?}").as_bytes()),
            }
            world.servers.visits().await;
        }
    }
    let records = format!("{:?}", world.log.records());
    assert_unseen("the log", records.as_bytes());
    assert!(world.log.records().iter().any(|record| record.masked > 0 && record.credentials == 1));
}

#[tokio::test]
async fn what_cannot_be_searched_is_refused() {
    let world = world().await;
    let base = format!("http://echo.example:{}", world.servers.http.port());
    let grant = bound(&base, CredentialPlace::Header("Authorization".into()), "{}", CredentialTransport::Plain);
    let proxy = world.proxy(grant).await;
    let host = base.trim_start_matches("http://");
    for (index, path) in ["/echo/gzip", "/echo/part"].iter().enumerate() {
        let heard = Raw::ask(
            proxy.address(),
            format!("GET {base}{path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\nRange: bytes=0-3\r\n\r\n"),
        )
        .await;
        assert_eq!(status_of(&heard), 403);
        assert_eq!(refusal_of(&world.record(index + 1).await), Some(RefusalReason::AnswerNotSearchable));
        let said = String::from_utf8_lossy(&world.servers.visits().await[0].said).to_ascii_lowercase();
        assert!(said.contains("accept-encoding: identity") && !said.contains("range:"), "{said}");
    }
}

/// A transfer coding besides `chunked` would hide the body from the search, and is not announced in a header that is passed on.
#[tokio::test]
async fn a_coded_transfer_is_not_passed_on() {
    let world = world().await;
    let base = format!("http://echo.example:{}", world.servers.http.port());
    let grant = bound(&base, CredentialPlace::Header("Authorization".into()), "{}", CredentialTransport::Plain);
    let proxy = world.proxy(grant).await;
    let host = base.trim_start_matches("http://");
    let heard = Raw::ask(proxy.address(), format!("GET {base}/echo/coded HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    assert_eq!(status_of(&heard), 502, "{}", String::from_utf8_lossy(&heard));
    let record = world.record(1).await;
    assert!(format!("{:?}", record.verdict).contains("transfer coding `gzip, chunked`"), "{record:?}");
}

#[tokio::test]
async fn the_secret_goes_to_the_named_place_of_the_named_host_only() {
    let world = world().await;
    let port = world.servers.http.port();
    let base = format!("http://echo.example:{port}");
    let grant = bound(&base, CredentialPlace::Header("X-Api-Key".into()), "{}", CredentialTransport::Plain);
    let proxy = world.proxy(grant).await;
    let ask = async |host: &str, lines: &str| {
        let target = format!("{host}:{port}");
        Raw::ask(proxy.address(), format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n{lines}\r\n")).await;
        String::from_utf8_lossy(&world.servers.visits().await[0].said).into_owned()
    };
    assert!(ask("echo.example", &format!("X-Api-Key: {PLACEHOLDER}\r\n")).await.contains(SECRET));
    assert!(!ask("other.example", &format!("X-Api-Key: {PLACEHOLDER}\r\n")).await.contains(SECRET), "another host");
    let elsewhere = ask("echo.example", &format!("X-Other: {PLACEHOLDER}\r\nX-Api-Key: own\r\n")).await;
    assert!(!elsewhere.contains(SECRET), "another header: {elsewhere}");
    // The client may not have the header removed by naming it in `Connection`.
    assert!(ask("echo.example", "Connection: close, X-Api-Key\r\n").await.contains(SECRET));
    // Over TLS only means: not in the clear.
    let strict = bound(&base, CredentialPlace::Header("X-Api-Key".into()), "{}", CredentialTransport::Tls);
    world.egress.client().send(&strict, FetchRequest::get(&base).header("x-api-key", PLACEHOLDER)).await.unwrap();
    assert!(!String::from_utf8_lossy(&world.servers.visits().await[0].said).contains(SECRET));
}

#[tokio::test]
async fn inside_tls_the_secret_is_put_in_by_the_proxy() {
    let world = world().await;
    let port = world.servers.https.port();
    let base = format!("https://echo.example:{port}");
    let mut grant =
        bound(&base, CredentialPlace::Header("Authorization".into()), "Bearer {}", CredentialTransport::Tls);
    // Without leave to look inside, a tunnel to this host could hand the secret back unseen.
    let closed = world.proxy(grant.clone()).await;
    let (_, head) = Raw::tunnel(closed.address(), &format!("echo.example:{port}")).await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");

    grant.intercept = Intercept::WhenGranted;
    let proxy = world.proxy(grant.clone()).await;
    for path in ECHOES {
        let (raw, head) = Raw::tunnel(proxy.address(), &format!("echo.example:{port}")).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: echo.example:{port}\r\nAuthorization: Bearer {PLACEHOLDER}\r\nConnection: close\r\n\r\n"
        );
        let heard = raw.ask_inside(proxy.authority_pem().unwrap(), "echo.example", request).await.unwrap();
        assert!(status_of(&heard) > 0);
        assert_unseen(path, &heard);
        let visits = world.servers.visits().await;
        let said = visits.iter().map(|visit| String::from_utf8_lossy(&visit.said).into_owned()).collect::<String>();
        assert!(said.contains(&format!("Bearer {SECRET}")), "{path}: {said}");
    }
    // By the whole address in the first line, the proxy opens TLS itself.
    let heard =
        Raw::ask(proxy.address(), format!("GET {base}/echo HTTP/1.1\r\nHost: echo.example:{port}\r\n\r\n")).await;
    assert_eq!(status_of(&heard), 200);
    assert_unseen("absolute form", &heard);
    let answer = world.egress.client().send(&grant, FetchRequest::get(format!("{base}/echo"))).await.unwrap();
    assert_unseen("the client", &answer.body);
    assert!(String::from_utf8_lossy(&answer.body).contains("***"));
}

#[tokio::test]
async fn a_secret_that_is_not_to_be_had_stops_the_request() {
    let world = world().await;
    let base = format!("http://echo.example:{}", world.servers.http.port());
    for (reference, said) in [("env:UNKNOWN", "not in the vault"), ("env:SHORT", "fewer than 8 bytes")] {
        let mut grant = bound(&base, CredentialPlace::Header("Authorization".into()), "{}", CredentialTransport::Plain);
        grant.credentials[0].secret = reference.parse().unwrap();
        let error = world.egress.client().send(&grant, FetchRequest::get(&base)).await.unwrap_err();
        assert_eq!(error.code(), "egress_secret_unavailable");
        assert!(error.to_string().contains(said), "{error}");
    }
    assert!(world.servers.visits().await.is_empty(), "nothing was sent");
}
