//! QUIC: round trips, changes of network, restarts, and who is refused.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command as Program;
use std::time::Duration;

use palyra_client::Follow;
use palyra_client::api::{CreateRunParams, PrincipalView, RunView};
use palyra_client::command::{About, Command, NoParams, StreamCommand};
use palyra_client::quic::{ALPN, MAX_FRAME_BYTES, QuicClient};
use palyra_common::{
    AcpCommand, AcpCommandEnvelope, PrincipalRole, RequestId, RunId, RunStreamEvent, ToStableError as _,
};
use palyra_identity::TlsVersions;
use quinn::ConnectionError;
use serde_json::{Value, json};

use crate::quic_support::{
    allow, asks, code, create, credentials, in_time, is_question, issued, question, quic, quic_address, raw, show,
    tape_of,
};
use crate::support::Place;

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

/// A reader that does not read stops its own stream and nothing else; documents larger than a frame arrive whole.
#[tokio::test]
async fn who_does_not_read_holds_up_nobody() {
    let place = Place::new().with_script("[[turn]]\ntext = \"yes\"\n");
    let daemon = place.start().await;
    let client = quic(&daemon).await;
    let large = CreateRunParams {
        objective: None,
        max_attempts: None,
        prompt: "long ".repeat(MAX_FRAME_BYTES / 4),
        ..daemon.task("")
    };
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
    let place = asks().with("PALYRA_QUIC_MAX_CONNECTIONS", "2");
    let daemon = place.start().await;
    let run: RunView = quic(&daemon).await.ask(&create(&daemon, "write it")).await.unwrap();
    let (one, two) = (quic(&daemon).await, quic(&daemon).await);
    // Both follow the run. A connection on which nothing is under way would give way to a new one.
    let mut following = Vec::new();
    for client in [&one, &two] {
        let mut documents = client.stream(&tape_of(run.run_id, 1)).await.unwrap();
        in_time(documents.next()).await.unwrap().unwrap();
        following.push(documents);
    }
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
    // Now it is idle, so whoever comes next has its place.
    let four = quic(&daemon).await;
    four.command(&show()).await.unwrap();
    in_time(following[1].next()).await.unwrap();
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
