//! QUIC: who is refused, what is refused, and that nothing is taken before the handshake is complete.

use std::sync::Arc;
use std::time::Duration;

use palyra_client::api::{ListRunsParams, RunView};
use palyra_client::quic::{ALPN, MAX_FRAME_BYTES, QuicClient};
use palyra_common::{PrincipalRole, RequestId};
use palyra_identity::{ClientCredentials, ClientRequest, TlsVersions, server_only_client_config};
use quinn::{ConnectionError, Endpoint};
use serde_json::{Value, json};

use crate::quic_support::{
    asks, authority, code, create, credentials, framed, in_time, issued, question, quic, quic_address, raw, send, show,
    verdict,
};
use crate::support::Place;

#[tokio::test]
async fn whoever_cannot_be_known_is_refused() {
    let place = Place::new();
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let address = quic_address(&daemon);
    let tls13 = TlsVersions::Tls13Only;
    assert_eq!(verdict(address, local.client_config(&[ALPN], tls13).unwrap()).await, Ok(()));
    // no_application_protocol
    for alpn in [&[b"h3".as_slice()][..], &[b"palyra-quic-v2".as_slice()], &[]] {
        assert_eq!(verdict(address, local.client_config(alpn, tls13).unwrap()).await, Err("alert 120".to_owned()));
    }
    // certificate_required
    let anonymous = server_only_client_config(&local.authority_pem, &[ALPN], tls13).unwrap();
    assert_eq!(verdict(address, anonymous).await, Err("alert 116".to_owned()));
    // unknown_ca: somebody else's authority says the same about somebody
    let elsewhere = tempfile::tempdir().unwrap();
    let request = ClientRequest {
        device: local.identity.device,
        principal: local.identity.principal.clone(),
        role: PrincipalRole::Owner,
        life: Duration::from_secs(3600),
    };
    let mut stranger = authority(elsewhere.path()).issue_client(&request).unwrap();
    stranger.authority_pem.clone_from(&local.authority_pem);
    assert_eq!(verdict(address, stranger.client_config(&[ALPN], tls13).unwrap()).await, Err("alert 48".to_owned()));
    let error = QuicClient::connect(address, "localhost", &stranger).await.unwrap();
    assert_eq!(code(error.command(&show()).await), "certificate_refused");
    // A client that trusts another authority does not talk to this daemon either.
    let mut lost = local.clone();
    lost.authority_pem = authority(elsewhere.path()).pem().to_owned();
    assert_eq!(code(QuicClient::connect(address, "localhost", &lost).await), "certificate_refused");

    // certificate_revoked; the owner gets a new one, of another device.
    daemon.kill();
    authority(&place.state_root()).revoke(&local.identity.serial, &local.identity.principal).unwrap();
    let daemon = place.start().await;
    let client = loop {
        let found = credentials(&daemon).await;
        if found.identity.serial != local.identity.serial {
            break quic(&daemon).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    client.command(&show()).await.unwrap();
    let revoked = local.client_config(&[ALPN], tls13).unwrap();
    assert_eq!(verdict(quic_address(&daemon), revoked).await, Err("alert 44".to_owned()));
}

#[tokio::test]
async fn a_connection_ends_with_its_certificate() {
    let place = asks();
    let daemon = place.start().await;
    let owner = quic(&daemon).await;
    let run: RunView = owner.ask(&create(&daemon, "write it")).await.unwrap();
    question(&daemon).await;
    let brief = issued(&daemon, PrincipalRole::Owner, Duration::from_secs(3));
    let tls = brief.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    let (_endpoint, connection) = raw(quic_address(&daemon), tls).await.unwrap();
    let (mut up, mut down) = connection.open_bi().await.unwrap();
    let asked = json!({"request_id": RequestId::generate(), "command": "run.tape", "params": {"run_id": run.run_id, "follow": true}});
    up.write_all(&framed(&asked.to_string())).await.unwrap();
    up.finish().unwrap();
    assert!(in_time(down.read_chunk(64, true)).await.unwrap().is_some(), "the stream had begun");
    match in_time(connection.closed()).await {
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code.into_inner(), 2),
        other => panic!("{other}"),
    }
    owner.command(&show()).await.unwrap();
}

/// Bytes that are no command are answered, and hurt nobody.
#[tokio::test]
async fn nonsense_is_answered_and_the_connection_goes_on() {
    let place = Place::new();
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let tls = local.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    let (_endpoint, connection) = raw(quic_address(&daemon), tls).await.unwrap();
    let good = framed(&json!({"request_id": RequestId::generate(), "command": "principal.show"}).to_string());
    let oversized = u32::try_from(MAX_FRAME_BYTES + 1).unwrap().to_be_bytes();
    for (bytes, expected) in [
        (oversized.to_vec(), "frame_too_large"),
        ([&oversized[..], &vec![b' '; MAX_FRAME_BYTES + 1]].concat(), "frame_too_large"),
        (b"\xff\xff\xff\xff".to_vec(), "frame_too_large"),
        (b"\x80\x08\x00\x00".to_vec(), "frame_too_large"),
        (b"\x00\x00\x00\x00".to_vec(), "frame_malformed"),
        (b"".to_vec(), "frame_malformed"),
        (b"\x00\x00".to_vec(), "frame_malformed"),
        (good[..good.len() - 1].to_vec(), "frame_malformed"),
        ([&good[..], b"\x00"].concat(), "frame_malformed"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "frame_too_large"),
        (framed("{"), "body_malformed"),
        (framed("[]"), "request_invalid"),
        (framed("{\"request_id\":\"x\",\"command\":\"principal.show\"}"), "request_invalid"),
        (
            framed(&format!("{{\"request_id\":\"{}\",\"command\":\"run.explode\"}}", RequestId::generate())),
            "request_invalid",
        ),
    ] {
        let replies = send(&connection, &bytes).await.unwrap();
        assert_eq!(replies.len(), 1, "{replies:?}");
        assert_eq!(replies[0]["error"]["code"], expected, "{bytes:?}: {replies:?}");
    }
    let wrong = json!({"request_id": RequestId::generate(), "command": "run.tape", "params": {"run_id": 7}});
    let replies = send(&connection, &framed(&wrong.to_string())).await.unwrap();
    assert_eq!((&replies[0]["ok"], &replies[0]["error"]["code"]), (&json!(false), &json!("request_invalid")));
    // Streams that are given up half-way.
    for _ in 0..200 {
        let (mut up, _down) = connection.open_bi().await.unwrap();
        up.write_all(b"\x00\x00\x10\x00{").await.unwrap();
        up.reset(7_u32.into()).unwrap();
    }
    assert_eq!(send(&connection, &good).await.unwrap()[0]["ok"], true);
}

/// A ticket that lets a client send before the handshake is complete, from a server that gives such tickets, opens nothing here.
#[tokio::test]
async fn early_data_is_refused() {
    let place = Place::new();
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let lure = Lure::start();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = lure.client(&local);
    let connect = |address| endpoint.connect_with(config.clone(), address, "localhost").unwrap();

    let plain = in_time(connect(quic_address(&daemon))).await.unwrap();
    let good = |command: &str, params: Value| {
        framed(&json!({"request_id": RequestId::generate(), "command": command, "params": params}).to_string())
    };
    send(&plain, &good("principal.show", json!({}))).await.unwrap();
    assert!(connect(quic_address(&daemon)).into_0rtt().is_err(), "the daemon gives no tickets");

    let lured = in_time(connect(lure.address)).await.unwrap();
    let mut said = in_time(lured.accept_uni()).await.unwrap();
    in_time(said.read_to_end(16)).await.unwrap();
    let Ok((early, accepted)) = connect(quic_address(&daemon)).into_0rtt() else { panic!("there is no ticket") };
    let (mut up, mut down) = early.open_bi().await.unwrap();
    let task = serde_json::to_value(daemon.task("sent early")).unwrap();
    up.write_all(&good("run.create", task.clone())).await.unwrap();
    up.finish().unwrap();
    assert!(!in_time(accepted).await, "the daemon takes no early data");
    assert!(in_time(down.read_to_end(1 << 20)).await.is_err());
    // The handshake itself was completed, with the certificate; only what came before it is gone.
    let replies = send(&early, &good("run.create", task)).await.unwrap();
    assert_eq!(replies[0]["ok"], true, "{replies:?}");
    let runs = daemon.client.runs(&ListRunsParams::default()).await.unwrap().runs;
    assert_eq!(runs.len(), 1, "{runs:?}");
}

/// A server that hands out what the daemon does not.
struct Lure {
    address: std::net::SocketAddr,
    certificate: rustls_pki_types::CertificateDer<'static>,
    endpoint: Endpoint,
}

impl Lure {
    fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.max_early_data_size = u32::MAX;
        let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
        let server = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = Endpoint::server(server, "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = endpoint.local_addr().unwrap();
        let listening = endpoint.clone();
        tokio::spawn(async move {
            while let Some(incoming) = listening.accept().await {
                let Ok(connection) = incoming.await else { continue };
                // Behind the tickets, so whoever has read it has them.
                let mut said = connection.open_uni().await.unwrap();
                said.write_all(b"hello").await.unwrap();
                said.finish().unwrap();
                connection.closed().await;
            }
        });
        Self { address, certificate, endpoint }
    }

    /// A client that trusts both, shows the local owner's certificate and sends as early as it may.
    fn client(&self, local: &ClientCredentials) -> quinn::ClientConfig {
        use rustls_pki_types::pem::PemObject as _;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let read = |pem: &str| rustls_pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        roots.add(read(&local.authority_pem)).unwrap();
        let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(local.key_pem.expose().as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![read(&local.certificate_pem)], key)
            .unwrap();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.enable_early_data = true;
        quinn::ClientConfig::new(Arc::new(quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap()))
    }
}

impl Drop for Lure {
    fn drop(&mut self) {
        self.endpoint.close(0_u32.into(), b"");
    }
}
