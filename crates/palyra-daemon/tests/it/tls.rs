//! HTTP over TLS, device certificates over it, and which addresses may be bound.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use palyra_client::api::ListRunsParams;
use palyra_client::{Client, Endpoint, Follow, Trust};
use palyra_common::{HealthStatus, SecretString};
use palyra_identity::{TlsVersions, server_only_client_config};
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::quic_support::{authority, credentials, in_time};
use crate::raw::loopback;
use crate::support::{Daemon, Place, code};

const TLS: TlsVersions = TlsVersions::Tls12AndLater;

fn tls_place() -> Place {
    Place::new().with("PALYRA_HTTP_TLS", "true")
}

fn ca(daemon: &Daemon) -> String {
    std::fs::read_to_string(daemon.state_root.join("identity/ca.pem")).unwrap()
}

/// One request over TLS: the status, the body and the protocol that was agreed on, or why there was no answer.
async fn https(
    daemon: &Daemon,
    tls: Arc<ClientConfig>,
    host: &str,
    path: &str,
    headers: &str,
) -> Result<(u16, serde_json::Value), String> {
    let address = daemon.address();
    let talking = async {
        let stream = TcpStream::connect(&address).await.map_err(|error| error.to_string())?;
        let name = "localhost".try_into().unwrap();
        let mut stream = TlsConnector::from(tls).connect(name, stream).await.map_err(|error| error.to_string())?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.map_err(|error| error.to_string())?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no answer")?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok((status, serde_json::from_str(body).unwrap()))
    };
    in_time(talking).await
}

#[tokio::test]
async fn callers_over_tls_are_known_by_token_or_certificate() {
    let place = tls_place();
    let daemon = place.start().await;
    let health = daemon.client.health().await.unwrap();
    let http = health.components.iter().find(|component| component.component == "http").unwrap();
    assert!(http.summary.starts_with("https://127.0.0.1:"), "{http:?}");
    let address = daemon.address();
    let anonymous = || server_only_client_config(&ca(&daemon), &[b"http/1.1"], TLS).unwrap();
    let principal = "/api/v1/principal";
    assert_eq!(https(&daemon, anonymous(), &address, "/healthz", "").await.unwrap().0, 200);
    let (status, body) = https(&daemon, anonymous(), &address, principal, "").await.unwrap();
    assert_eq!((status, &body["error"]["code"]), (401, &"token_refused".into()));
    let bearer = format!("Authorization: Bearer {}\r\n", daemon.token());
    let (status, body) = https(&daemon, anonymous(), &address, principal, &bearer).await.unwrap();
    assert_eq!((status, &body["via"]), (200, &"http, local token".into()));

    let local = credentials(&daemon).await;
    let device = || local.client_config(&[b"http/1.1"], TLS).unwrap();
    let (status, body) = https(&daemon, device(), &address, principal, "").await.unwrap();
    let via = format!("http, device {}", local.identity.device);
    assert_eq!((status, &body["role"], &body["via"]), (200, &"owner".into(), &via.into()));
    // A wrong token is not made good by a certificate.
    let (status, _) =
        https(&daemon, device(), &address, principal, "Authorization: Bearer nonsense\r\n").await.unwrap();
    assert_eq!(status, 401);
    // Nobody is taken at their word.
    let claim = "X-Palyra-Principal: uid:0\r\nX-Client-Cert: palyra://role/owner\r\n";
    assert_eq!(https(&daemon, anonymous(), &address, principal, claim).await.unwrap().0, 401);

    let elsewhere = tempfile::tempdir().unwrap();
    let mut stranger = authority(elsewhere.path())
        .ensure_local_owner(&elsewhere.path().join("local"), &local.identity.principal)
        .unwrap();
    stranger.authority_pem.clone_from(&local.authority_pem);
    let refused = https(&daemon, stranger.client_config(&[b"http/1.1"], TLS).unwrap(), &address, "/healthz", "").await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test]
async fn both_versions_of_http_are_offered() {
    let place = tls_place();
    let daemon = place.start().await;
    for (offered, agreed) in [(&[b"h2".as_slice(), b"http/1.1"][..], b"h2".as_slice()), (&[b"http/1.1"], b"http/1.1")] {
        let tls = server_only_client_config(&ca(&daemon), offered, TLS).unwrap();
        let stream = TcpStream::connect(daemon.address()).await.unwrap();
        let stream = in_time(TlsConnector::from(tls).connect("localhost".try_into().unwrap(), stream)).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(agreed));
    }
}

#[tokio::test]
async fn plain_http_is_told_about_tls() {
    let place = tls_place();
    let daemon = place.start().await;
    let answer = loopback(&daemon, "GET /healthz", &[("Host", &daemon.address())]);
    assert_eq!(answer.refusal(), (400, "tls_required".to_owned()));
    // Nor does a client that says nothing hold anybody up.
    let _silent = std::net::TcpStream::connect(daemon.address()).unwrap();
    let tls = server_only_client_config(&ca(&daemon), &[b"http/1.1"], TLS).unwrap();
    assert_eq!(https(&daemon, tls, &daemon.address(), "/healthz", "").await.unwrap().0, 200);
}

#[tokio::test]
async fn other_names_must_be_allowed() {
    let place = tls_place().with("PALYRA_HTTP_ALLOWED_HOSTS", "agents.example");
    let daemon = place.start().await;
    let port = daemon.address().rsplit(':').next().unwrap().to_owned();
    let tls = || server_only_client_config(&ca(&daemon), &[b"http/1.1"], TLS).unwrap();
    for (host, status) in [("agents.example", 200), ("AGENTS.example", 200), ("evil.example", 403)] {
        let answer = https(&daemon, tls(), &format!("{host}:{port}"), "/healthz", "").await.unwrap();
        assert_eq!(answer.0, status, "{host}");
    }
    // The daemon's own certificate is good for the name too.
    let stream = TcpStream::connect(daemon.address()).await.unwrap();
    in_time(TlsConnector::from(tls()).connect("agents.example".try_into().unwrap(), stream)).await.unwrap();
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

fn own_files(place: &Place, name: &str) -> Files {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files =
        Files { certificate: place.path().join(format!("{name}.pem")), key: place.path().join(format!("{name}.key")) };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o600)).unwrap();
    files
}

fn with_files(place: Place, certificate: &Path, key: &Path) -> Place {
    place
        .with("PALYRA_HTTP_TLS_CERTIFICATE", &certificate.display().to_string())
        .with("PALYRA_HTTP_TLS_KEY", &key.display().to_string())
}

#[tokio::test]
async fn the_operator_may_bring_a_certificate() {
    let place = tls_place();
    let files = own_files(&place, "own");
    let pem = std::fs::read_to_string(&files.certificate).unwrap();
    let place = with_files(place, &files.certificate, &files.key);
    let daemon = place.start().await;
    let tls = server_only_client_config(&pem, &[b"http/1.1"], TLS).unwrap();
    assert_eq!(https(&daemon, tls, &daemon.address(), "/healthz", "").await.unwrap().0, 200);
    let other = server_only_client_config(&ca(&daemon), &[b"http/1.1"], TLS).unwrap();
    assert!(https(&daemon, other, &daemon.address(), "/healthz", "").await.is_err());
    // Devices are still known by this installation's own authority.
    let local = credentials(&daemon).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls_pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let shown = rustls_pki_types::CertificateDer::from_pem_slice(local.certificate_pem.as_bytes()).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(local.key_pem.expose().as_bytes()).unwrap();
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![shown], key)
        .unwrap();
    let (status, body) = https(&daemon, Arc::new(tls), &daemon.address(), "/api/v1/principal", "").await.unwrap();
    assert_eq!((status, &body["role"]), (200, &"owner".into()));
}

#[test]
fn a_certificate_that_cannot_be_used_keeps_the_daemon_from_starting() {
    let base = tls_place();
    let (one, two) = (own_files(&base, "one"), own_files(&base, "two"));
    let exposed = own_files(&base, "exposed");
    std::fs::set_permissions(&exposed.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let missing = base.path().join("missing.pem");
    for (certificate, key, says) in [
        (&one.certificate, &two.key, "http.tls_key"),
        (&exposed.certificate, &exposed.key, "other users can read it"),
        (&missing, &one.key, "http.tls_certificate"),
        (&one.key, &one.key, "it contains no PEM certificates"),
        (&one.certificate, &one.certificate, "http.tls_key"),
    ] {
        let place = with_files(tls_place(), certificate, key);
        let output = place.refused();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(!said.contains("PRIVATE KEY"), "{said}");
    }
}

/// Every combination of what an address needs that other machines can reach.
#[tokio::test]
async fn a_public_address_needs_everything_at_once() {
    let acknowledgement = "PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK";
    let cases = (0_u8..8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0));
    for (tls, file, environment) in cases {
        for (key, variable) in [("daemon.http_bind", "PALYRA_DAEMON_HTTP_BIND"), ("quic.bind", "PALYRA_QUIC_BIND")] {
            // QUIC has TLS by itself.
            let missing: Vec<_> = [
                (tls || key == "quic.bind", "TLS on this interface"),
                (file, "deployment.dangerous_remote_bind_ack"),
                (environment, acknowledgement),
            ]
            .into_iter()
            .filter(|(there, _)| !there)
            .map(|(_, name)| name)
            .collect();
            let mut place = Place::new().with(variable, "0.0.0.0:0").with("PALYRA_HTTP_TLS", &tls.to_string());
            let path = place.path().join("palyra.toml");
            std::fs::write(&path, format!("version = 1\n[deployment]\ndangerous_remote_bind_ack = {file}\n")).unwrap();
            place = place.with("PALYRA_CONFIG", &path.display().to_string());
            if environment {
                place = place.with(acknowledgement, "true");
            }
            if missing.is_empty() {
                let daemon = place.start().await;
                assert_eq!(daemon.client.health().await.unwrap().status, HealthStatus::Ok, "{key}");
                continue;
            }
            let output = place.refused();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("[public_bind_refused]") && said.contains(key), "{said}");
            for name in ["TLS on this interface", "deployment.dangerous_remote_bind_ack", acknowledgement] {
                let named = said.lines().next().unwrap().contains(name);
                assert_eq!(named, missing.contains(&name), "{key} {tls} {file} {environment}: {said}");
            }
        }
    }
}

/// Half a handshake is given up, and nobody else waits for it.
#[tokio::test]
async fn a_handshake_that_stops_half_way_holds_up_nobody() {
    let place = tls_place();
    let daemon = place.start().await;
    let mut half = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(daemon.address()).await.unwrap();
        stream.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
        half.push(stream);
    }
    let tls = server_only_client_config(&ca(&daemon), &[b"http/1.1"], TLS).unwrap();
    assert_eq!(https(&daemon, tls, &daemon.address(), "/healthz", "").await.unwrap().0, 200);
    let mut byte = [0];
    for stream in &mut half {
        let ended = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut byte)).await;
        assert!(ended.is_ok(), "the daemon waits for ever");
    }
}

#[tokio::test]
async fn the_client_library_speaks_tls_to_who_proves_its_name() {
    let place = tls_place().with_script("[[turn]]\ntext = \"from afar\"");
    let daemon = place.start().await;
    let url = format!("https://localhost:{}", daemon.address().rsplit_once(':').unwrap().1);
    let trust = Trust::Authority(daemon.state_root.join("identity/ca.pem"));
    let token = || SecretString::new(daemon.token());
    let client = Client::new(Endpoint::remote(&url, token(), &trust).unwrap());
    let run = client.create_run(&daemon.task("hello")).await.unwrap();
    let mut tape = client.tape(run.run_id, 1, Follow::UntilEnd);
    let mut last = 0;
    while let Some(event) = in_time(tape.next()).await.unwrap() {
        last = event.seq;
    }
    let detail = client.run(run.run_id).await.unwrap();
    assert_eq!((detail.answer.as_deref(), detail.run.last_seq), (Some("from afar"), last));

    // Another authority, another name, another token; and who speaks no TLS at all.
    let elsewhere = tempfile::tempdir().unwrap();
    let foreign = elsewhere.path().join("ca.pem");
    std::fs::write(&foreign, authority(elsewhere.path()).pem()).unwrap();
    let refused = |url: &str, token: SecretString, trust: Trust| {
        let client = Client::new(Endpoint::remote(url, token, &trust).unwrap());
        async move { code(client.runs(&ListRunsParams::default()).await) }
    };
    assert_eq!(refused(&url, token(), Trust::Authority(foreign)).await, "daemon_untrusted");
    let other_name = url.replace("localhost", "127.0.0.2");
    assert_eq!(refused(&other_name, token(), trust.clone()).await, "daemon_unreachable");
    assert_eq!(refused(&url, SecretString::new("wrong".to_owned()), trust.clone()).await, "token_refused");
    let without = Place::new();
    let plain = without.start().await;
    let url = format!("https://localhost:{}", plain.address().rsplit_once(':').unwrap().1);
    assert_eq!(refused(&url, token(), trust).await, "daemon_untrusted");
}
