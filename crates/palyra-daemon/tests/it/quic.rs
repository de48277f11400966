//! QUIC: round trips, changes of network, restarts, and who is refused.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command as Program;
use std::sync::Arc;
use std::time::Duration;

use palyra_client::Follow;
use palyra_client::api::{CreateRunParams, ListRunsParams, PrincipalView, RunTapeParams, RunView};
use palyra_client::command::{About, Command, NoParams, StreamCommand};
use palyra_client::quic::{ALPN, MAX_FRAME_BYTES, QuicClient};
use palyra_common::{
    AcpCommand, AcpCommandEnvelope, DeviceId, PrincipalRole, RequestId, RunId, RunStreamBody, RunStreamEvent,
    ToStableError as _,
};
use palyra_identity::{ClientCredentials, ClientRequest, PrincipalId, TlsVersions, server_only_client_config};
use quinn::{ConnectionError, Endpoint};
use serde_json::{Value, json};

use crate::quic_support::{
    allow, authority, code, credentials, framed, in_time, question, quic, quic_address, raw, send, verdict,
};
use crate::support::{Daemon, Place};

const WRITES: &str = r#"
[[turn]]
text = ["Writing ", "it."]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "made.txt", content = "one\n" }
[[turn]]
text = "Done."
"#;

fn asks() -> Place {
    Place::new().with_script(WRITES).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write")
}

fn create(daemon: &Daemon, prompt: &str) -> Command {
    Command::RunCreate(daemon.task(prompt))
}

fn show() -> Command {
    Command::PrincipalShow(NoParams {})
}

fn tape_of(target: RunId, from_seq: u64) -> StreamCommand {
    let params = RunTapeParams { from_seq: Some(from_seq), follow: Some(true), ..RunTapeParams::default() };
    StreamCommand::RunTape(About { target, params })
}

fn is_question(event: &RunStreamEvent) -> bool {
    matches!(event.body, RunStreamBody::ToolApprovalRequest(_))
}

/// A client certificate of a daemon's own authority.
fn issued(daemon: &Daemon, role: PrincipalRole, life: Duration) -> ClientCredentials {
    let principal: PrincipalId = "user:guest".parse().unwrap();
    let request = ClientRequest { device: DeviceId::generate(), principal, role, life };
    authority(&daemon.state_root).issue_client(&request).unwrap()
}

#[tokio::test]
async fn commands_and_streams_are_the_same_as_everywhere() {
    let place = Place::new();
    place.write("notes.md", "hello\n");
    let daemon = place.start().await;
    let client = quic(&daemon).await;
    let me: PrincipalView = client.ask(&show()).await.unwrap();
    assert_eq!((me.role, me.principal.starts_with("uid:")), (PrincipalRole::Owner, true), "{me:?}");
    assert!(me.via.starts_with("quic, device "), "{me:?}");

    let run: RunView = client.ask(&create(&daemon, "list the files")).await.unwrap();
    let mut tape = client.tape(run.run_id, 1, Follow::UntilEnd);
    let mut events = Vec::new();
    while let Some(event) = in_time(tape.next()).await.unwrap() {
        events.push(event);
    }
    assert_eq!(events, daemon.follow(run.run_id, 1).await);
    assert!(events.last().unwrap().is_terminal());

    // The same key with the same command is carried out once.
    let envelope = |key: &str, title: &str| AcpCommandEnvelope {
        request_id: RequestId::generate(),
        command: AcpCommand::SessionNew,
        params: json!({"title": title}),
        idempotency_key: Some(key.to_owned()),
        expected_version: None,
    };
    let first = client.envelope(&envelope("k1", "one")).await.unwrap();
    let again = client.envelope(&envelope("k1", "one")).await.unwrap();
    assert_eq!((first.is_replayed(), again.is_replayed()), (false, true));
    assert_eq!(first.outcome(), again.outcome());
    let other = client.envelope(&envelope("k1", "two")).await.unwrap();
    assert_eq!(other.outcome().unwrap_err().category, palyra_common::ErrorCategory::Conflict);

    let absent = RunId::generate();
    assert_eq!(
        code(client.command(&Command::RunGet(About { target: absent, params: NoParams {} })).await),
        "run_not_found"
    );
    let mut documents = client.stream(&tape_of(absent, 1)).await.unwrap();
    assert_eq!(code(documents.next().await), "run_not_found");
    client.close().await;
}

#[tokio::test]
async fn a_device_may_do_what_its_role_may() {
    let place = Place::new();
    let daemon = place.start().await;
    credentials(&daemon).await;
    let viewer = issued(&daemon, PrincipalRole::Viewer, Duration::from_secs(3600));
    let client = QuicClient::connect(quic_address(&daemon), "localhost", &viewer).await.unwrap();
    let me: PrincipalView = client.ask(&show()).await.unwrap();
    assert_eq!((me.principal.as_str(), me.role), ("user:guest", PrincipalRole::Viewer));
    for refused in [create(&daemon, "write it"), Command::DaemonStop(NoParams {})] {
        let error = client.command(&refused).await.unwrap_err().to_stable();
        assert_eq!(error.category, palyra_common::ErrorCategory::Policy, "{error:?}");
    }
}

#[tokio::test]
async fn a_stream_goes_on_when_the_client_changes_its_address() {
    let place = asks();
    let daemon = place.start().await;
    let client = quic(&daemon).await;
    let run: RunView = client.ask(&create(&daemon, "write it")).await.unwrap();
    // Not a tape, which would hide a broken connection by opening another.
    let mut documents = client.stream(&tape_of(run.run_id, 1)).await.unwrap();
    let mut events: Vec<RunStreamEvent> = Vec::new();
    while !events.last().is_some_and(is_question) {
        events.push(serde_json::from_value(in_time(documents.next()).await.unwrap().unwrap()).unwrap());
    }
    let (before, after) = (client.rebind().unwrap(), client.rebind().unwrap());
    assert_ne!(before, after);
    allow(&daemon).await;
    while let Some(document) = in_time(documents.next()).await.unwrap() {
        events.push(serde_json::from_value(document).unwrap());
    }
    assert_eq!(events, daemon.follow(run.run_id, 1).await, "no gap and no repetition");
    // The connection is the same one, and good for more.
    client.command(&show()).await.unwrap();
}

#[tokio::test]
async fn a_tape_goes_on_after_the_daemon_was_killed() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let place = asks().with("PALYRA_QUIC_BIND", &port);
    let daemon = place.start().await;
    let client = quic(&daemon).await;
    let run: RunView = client.ask(&create(&daemon, "write it")).await.unwrap();
    let mut tape = client.tape(run.run_id, 1, Follow::UntilEnd);
    let mut events = Vec::new();
    while !events.last().is_some_and(is_question) {
        events.push(in_time(tape.next()).await.unwrap().unwrap());
    }
    daemon.kill();
    let daemon = place.start().await;
    allow(&daemon).await;
    while let Some(event) = in_time(tape.next()).await.unwrap() {
        events.push(event);
    }
    assert_eq!(events, daemon.follow(run.run_id, 1).await, "no gap and no repetition");
}

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

/// A reader that does not read stops its own stream and nothing else; documents larger than a frame arrive whole.
#[tokio::test]
async fn who_does_not_read_holds_up_nobody() {
    let place = Place::new().with_script("[[turn]]\ntext = \"yes\"\n");
    let daemon = place.start().await;
    let client = quic(&daemon).await;
    let large = CreateRunParams { prompt: "long ".repeat(MAX_FRAME_BYTES / 4), ..daemon.task("") };
    let run = daemon.client.create_run(&large).await.unwrap();
    daemon.follow(run.run_id, 1).await;
    let refused = client.command(&Command::RunCreate(large)).await;
    assert_eq!(code(refused), "frame_too_large");

    let export = StreamCommand::JournalExport(palyra_client::api::ExportJournalParams { from_seq: None });
    let mut unread = client.stream(&export).await.unwrap();
    for _ in 0..20 {
        let again: RunView = client.ask(&create(&daemon, "go on")).await.unwrap();
        daemon.follow(again.run_id, 1).await;
    }
    let (mut seq, mut largest) = (0, 0);
    while let Some(record) = in_time(unread.next()).await.unwrap() {
        seq += 1;
        assert_eq!(record["seq"], seq, "{record}");
        largest = largest.max(record.to_string().len());
    }
    assert!(seq > 0 && largest > MAX_FRAME_BYTES, "{seq} records, the largest of {largest} bytes");
}

#[tokio::test]
async fn there_are_as_many_connections_as_the_operator_allows() {
    let place = Place::new().with("PALYRA_QUIC_MAX_CONNECTIONS", "2");
    let daemon = place.start().await;
    let (one, two) = (quic(&daemon).await, quic(&daemon).await);
    one.command(&show()).await.unwrap();
    two.command(&show()).await.unwrap();
    let local = credentials(&daemon).await;
    assert_eq!(code(QuicClient::connect(quic_address(&daemon), "localhost", &local).await), "daemon_unreachable");
    one.close().await;
    let start = std::time::Instant::now();
    let three = loop {
        match QuicClient::connect(quic_address(&daemon), "localhost", &local).await {
            Ok(client) => break client,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    three.command(&show()).await.unwrap();
}

#[tokio::test]
async fn a_daemon_that_stops_says_goodbye() {
    let place = asks();
    let daemon = place.start().await;
    let client = quic(&daemon).await;
    let run: RunView = client.ask(&create(&daemon, "write it")).await.unwrap();
    question(&daemon).await;
    let local = credentials(&daemon).await;
    let tls = local.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    let (_endpoint, watching) = raw(quic_address(&daemon), tls).await.unwrap();
    let mut documents = client.stream(&tape_of(run.run_id, 1)).await.unwrap();
    in_time(documents.next()).await.unwrap().unwrap();
    client.command(&Command::DaemonStop(NoParams {})).await.unwrap();
    let refusal = loop {
        match in_time(documents.next()).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the run is not over"),
            Err(error) => break error.to_stable(),
        }
    };
    assert_eq!((refusal.code.as_str(), refusal.retryable), ("daemon_stopping", true), "{refusal:?}");
    match in_time(watching.closed()).await {
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code.into_inner(), 1),
        other => panic!("{other}"),
    }
    assert!(daemon.ended().await.success());
    assert!(!place.state_root().join("quic.addr").exists());
}

#[tokio::test]
async fn quic_can_be_switched_off_and_a_taken_port_degrades() {
    let place = Place::new().with("PALYRA_QUIC_ENABLED", "false");
    let daemon = place.start().await;
    assert!(!daemon.state_root.join("quic.addr").exists() && !daemon.state_root.join("identity").exists());
    drop(daemon);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let place = Place::new().with("PALYRA_QUIC_BIND", &taken.local_addr().unwrap().to_string());
    let daemon = place.start().await;
    let health = daemon.client.health().await.unwrap();
    let part = health.components.iter().find(|component| component.component == "quic").unwrap();
    assert_eq!(part.status, palyra_common::HealthStatus::Degraded);
    assert!(part.hint.as_ref().unwrap().contains("quic.bind"), "{part:?}");
}

/// A client that is not ours, with nothing of ours but the files of the local owner.
#[tokio::test]
async fn aioquic_shakes_hands_and_gives_commands() {
    let place = Place::new();
    let daemon = place.start().await;
    credentials(&daemon).await;
    let run = daemon.create("list the files").await;
    let events = daemon.follow(run.run_id, 1).await;
    let identity = daemon.state_root.join("identity/local");
    let ask = |identity: &Path, alpn: &str, command: &str, params: &Value| {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/clients");
        let made = Program::new("bash").arg(scripts.join("setup.sh")).arg("quic").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let python = String::from_utf8(made.stdout).unwrap();
        let output = Program::new(python.trim())
            .arg(scripts.join("quic_client.py"))
            .arg(quic_address(&daemon).to_string())
            .arg(identity)
            .args([alpn, command, &params.to_string()])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let seen = ask(&identity, "palyra-quic-v1", "principal.show", &json!({}));
    assert_eq!(seen["handshake"], json!({"alpn": "palyra-quic-v1", "early_data": false, "resumed": false}), "{seen}");
    assert_eq!(seen["messages"][0]["result"]["role"], "owner", "{seen}");

    let seen = ask(&identity, "palyra-quic-v1", "run.tape", &json!({"run_id": run.run_id}));
    let messages = seen["messages"].as_array().unwrap();
    let (end, documents) = messages.split_last().unwrap();
    assert!(end.get("document").is_none() && end.get("ok").is_none(), "{end}");
    let read: Vec<RunStreamEvent> =
        documents.iter().map(|message| serde_json::from_value(message["document"].clone()).unwrap()).collect();
    assert_eq!(read, events);

    let seen = ask(&identity, "h3", "principal.show", &json!({}));
    assert!(seen["messages"].is_null(), "{seen}");
    // Without its certificate it gets no further than the handshake.
    let bare = tempfile::tempdir().unwrap();
    std::fs::copy(identity.join("ca.pem"), bare.path().join("ca.pem")).unwrap();
    let seen = ask(bare.path(), "palyra-quic-v1", "principal.show", &json!({}));
    assert!(seen["messages"].as_array().is_none_or(Vec::is_empty), "{seen}");
}
