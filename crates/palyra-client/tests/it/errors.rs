//! What the client makes of refusals, nonsense and silence.

use palyra_client::api::{CreateRunParams, ListRunsParams, TailJournalParams};
use palyra_client::{Client, ClientError, Endpoint};
use palyra_common::{ErrorCategory, ExitCode, RunId, ToStableError as _};

use crate::support::{Ending, FakeDaemon, RUN, json, raw, run_view, stream};

#[tokio::test]
async fn no_daemon_means_exit_code_four() {
    let directory = tempfile::tempdir().unwrap();
    let error = Client::connect(directory.path()).await.unwrap_err();
    assert!(error.is_unreachable());
    let envelope = error.to_stable();
    assert_eq!(envelope.code, "daemon_unreachable");
    assert_eq!(envelope.category, ErrorCategory::Availability);
    assert_eq!(envelope.exit_code(), ExitCode::Connectivity);
    assert!(envelope.retryable);
    assert!(envelope.recovery_hint.unwrap().contains("palyra daemon start"));

    // A socket file that a killed daemon left behind.
    drop(std::os::unix::net::UnixListener::bind(directory.path().join("palyrad.sock")).unwrap());
    assert!(Client::connect(directory.path()).await.unwrap_err().is_unreachable());
}

#[tokio::test]
async fn a_refusal_keeps_its_envelope() {
    let body = serde_json::json!({ "error": {
        "code": "workspace_not_found", "message": "`/nope` does not exist", "category": "validation", "retryable": false,
        "recovery_hint": "name an existing directory",
        "validation_errors": [{ "field": "workspace", "code": "not_found", "message": "does not exist" }],
    }});
    let daemon = FakeDaemon::start(move |_, _| json("422 Unprocessable Content", &body));
    let envelope = daemon.client().run(RunId::from_u128(RUN)).await.unwrap_err().to_stable();
    assert_eq!(envelope.code, "workspace_not_found");
    assert_eq!(envelope.exit_code(), ExitCode::Validation);
    assert_eq!(envelope.recovery_hint.as_deref(), Some("name an existing directory"));
    assert_eq!(envelope.validation_errors[0].field, "workspace");
}

#[tokio::test]
async fn nonsense_is_named_and_never_believed() {
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("not json", raw("200 OK", "application/json", "hello")),
        ("cut json", raw("200 OK", "application/json", r#"{"runs":["#)),
        ("wrong shape", raw("200 OK", "application/json", r#"{"runs":{}}"#)),
        ("wrong phase", raw("200 OK", "application/json", r#"{"runs":[{"phase":"dancing"}]}"#)),
        ("error without envelope", raw("500 Internal Server Error", "text/html", "<h1>oops</h1>")),
        ("redirect", raw("302 Found", "text/plain", "")),
    ];
    for (name, answer) in cases {
        let daemon = FakeDaemon::start(move |_, _| answer.clone());
        let error = daemon.client().runs(&ListRunsParams::default()).await.unwrap_err();
        assert!(matches!(error, ClientError::Malformed { .. }), "{name}: {error}");
        assert_eq!(error.to_stable().code, "daemon_answer_malformed");
    }
    for (name, answer) in [
        ("silence", Vec::new()),
        ("half a head", b"HTTP/1.1 20".to_vec()),
        ("half a body", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}".to_vec()),
        ("another protocol", b"SSH-2.0-OpenSSH\r\n".to_vec()),
    ] {
        let daemon = FakeDaemon::start(move |_, _| answer.clone());
        let error = daemon.client().runs(&ListRunsParams::default()).await.unwrap_err();
        assert!(matches!(error, ClientError::Disconnected { .. }), "{name}: {error}");
        assert_eq!(error.to_stable().exit_code(), ExitCode::Connectivity, "{name}");
    }
}

#[tokio::test]
async fn a_stream_must_be_a_stream() {
    let daemon = FakeDaemon::start(|_, _| raw("200 OK", "text/html", "<p>"));
    let error = daemon.client().journal_tail(&TailJournalParams::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Malformed { .. }), "{error}");

    let daemon = FakeDaemon::start(|_, _| stream("{\"seq\":1,", &Ending::Proper));
    let mut records = daemon.client().journal_tail(&TailJournalParams::default()).await.unwrap();
    assert!(matches!(records.next().await, Err(ClientError::Disconnected { .. })), "a cut line is no end");

    let daemon = FakeDaemon::start(|_, _| stream("\n[1]\n", &Ending::Proper));
    let mut records = daemon.client().journal_tail(&TailJournalParams::default()).await.unwrap();
    assert!(matches!(records.next().await, Err(ClientError::Malformed { .. })));
}

#[tokio::test]
async fn only_a_run_with_an_idempotency_key_is_asked_for_again() {
    let params = |key: Option<&str>| CreateRunParams {
        attachments: Vec::new(),
        objective: None,
        max_attempts: None,
        binding: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_id: None,
        session_key: None,
        prompt: "list".to_owned(),
        workspace: "/w".to_owned(),
        model: None,
        agent: None,
        mode: None,
        limits: None,
        idempotency_key: key.map(str::to_owned),
    };
    let flaky = |number: usize| if number < 2 { Vec::new() } else { json("200 OK", &run_view("queued", 1)) };

    let daemon = FakeDaemon::start(move |number, _| flaky(number));
    assert!(daemon.client().create_run(&params(None)).await.is_err());
    assert_eq!(daemon.received().len(), 1);

    let daemon = FakeDaemon::start(move |number, _| flaky(number));
    assert_eq!(daemon.client().create_run(&params(Some("k"))).await.unwrap().run_id, RunId::from_u128(RUN));
    let bodies: Vec<_> = daemon.received().iter().map(|request| request.body.clone()).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| body == &bodies[0]), "the same request each time");
}

#[tokio::test]
async fn the_token_is_not_sent_where_it_cannot_be_read_safely() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::loopback("http://127.0.0.1:9", directory.path()).unwrap();
    let error = Client::new(endpoint).health().await.unwrap_err();
    assert!(matches!(error, ClientError::TokenUnreadable { .. }), "{error}");
    assert_eq!(error.to_stable().exit_code(), ExitCode::Auth);
}
