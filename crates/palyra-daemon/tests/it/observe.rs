//! What the daemon says about itself: numbers, readiness, its log and, where a collector is named, traces.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use palyra_client::Client;
use serde_json::Value;

use crate::collector::{Collector, attributes, eventually};
use crate::raw::{loopback, unix};
use crate::support::{Daemon, Place};

const WRITES: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "made.txt", content = "the-content-of-the-file\n" }
[[turn]]
text = "the-answer-of-the-model"
"#;

/// The interpreter with Prometheus' own parser.
fn python() -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/clients/setup.sh");
    let output = Command::new(setup).arg("prometheus").stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the Python environment cannot be made");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Numbers as Prometheus reads them.
fn parsed(text: &str, format: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/clients/read_metrics.py");
    let mut child = Command::new(python())
        .args([script.as_os_str(), format.as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sample(families: &Value, family: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let samples = families[family]["samples"].as_array()?;
    let fits = |sample: &&Value| {
        sample["name"] == name && labels.iter().all(|(label, value)| sample["labels"][*label] == *value)
    };
    samples.iter().find(fits)?["value"].as_f64()
}

async fn run_to_its_end(daemon: &Daemon) {
    let run = daemon.create("the-prompt-of-the-person").await;
    daemon.follow(run.run_id, 1).await;
}

#[tokio::test]
async fn prometheus_reads_the_numbers_in_both_formats() {
    let place = Place::new().with_script(WRITES);
    let daemon = place.start().await;
    run_to_its_end(&daemon).await;
    let address = daemon.address();
    let host = ("Host", address.as_str());
    assert_eq!(loopback(&daemon, "GET /metrics", &[host]).refusal(), (401, "token_refused".to_owned()));
    assert_eq!(loopback(&daemon, "GET /metrics", &[host, ("Authorization", "Bearer no")]).status, 401);
    let bearer = format!("Bearer {}", daemon.token());
    let known = [host, ("Authorization", bearer.as_str())];
    let plain = loopback(&daemon, "GET /metrics", &known);
    assert_eq!(plain.status, 200, "{plain:?}");
    assert!(plain.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{}", plain.head);
    let [first, second] = known;
    let accept = ("Accept", "application/openmetrics-text; version=1.0.0, text/plain; q=0.1");
    let open = loopback(&daemon, "GET /metrics", &[first, second, accept]);
    assert!(open.head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{}", open.head);

    for (text, format) in [(&plain.body, "prometheus"), (&open.body, "openmetrics")] {
        let families = parsed(text, format);
        let read = |family: &str, name: &str, labels: &[(&str, &str)]| sample(&families, family, name, labels);
        let total = |family: &str, labels: &[(&str, &str)]| read(family, &format!("{family}_total"), labels);
        let run = [("phase", "completed"), ("reason", "final_answer")];
        assert_eq!(total("palyra_runs", &run), Some(1.0), "{text}");
        assert_eq!(total("palyra_tool_calls", &[("class", "files"), ("outcome", "ok")]), Some(1.0));
        assert_eq!(total("palyra_model_calls", &[("outcome", "ok")]), Some(2.0));
        let created = [("command", "run.create"), ("transport", "http"), ("outcome", "ok")];
        assert_eq!(total("palyra_commands", &created), Some(1.0));
        assert_eq!(total("palyra_auth_failures", &[("reason", "missing")]), Some(1.0));
        assert_eq!(total("palyra_auth_failures", &[("reason", "unknown")]), Some(1.0));
        assert_eq!(read("palyra_runs_active", "palyra_runs_active", &[]), Some(0.0));
        let duration = "palyra_command_duration_seconds";
        assert_eq!(read(duration, &format!("{duration}_count"), &[("command", "run.create")]), Some(1.0));
        assert!(total("palyra_journal_appends", &[]).unwrap() > 5.0);
        assert!(read("palyra_journal_bytes", "palyra_journal_bytes", &[]).unwrap() > 4096.0);
        assert!(read("process_resident_memory_bytes", "process_resident_memory_bytes", &[]).unwrap() > 1e6);
        // This one at least; those before it may still be closing.
        assert!(read("palyra_connections", "palyra_connections", &[("transport", "http")]).unwrap() >= 1.0);
        assert!(families["palyra_build_info"]["samples"][0]["labels"]["version"].is_string());
        assert_eq!(families["palyra_runs"]["type"], "counter");
    }
}

#[tokio::test]
async fn a_daemon_that_can_work_is_ready() {
    let place = Place::new();
    let daemon = place.start().await;
    let address = daemon.address();
    // Whoever watches a daemon needs no credential to hear whether it is there.
    let answer = loopback(&daemon, "GET /readyz", &[("Host", &address)]);
    assert_eq!((answer.status, answer.json()["ready"].as_bool()), (200, Some(true)), "{answer:?}");
    assert_eq!(loopback(&daemon, "GET /readyz", &[("Host", "evil.example")]).code(), "host_refused");
}

#[tokio::test]
async fn a_daemon_whose_journal_takes_nothing_is_not_ready_and_says_why() {
    let place = Place::new().with("PALYRA_JOURNAL_MIN_FREE_BYTES", &i64::MAX.to_string());
    let daemon = place.start().await;
    let answer = unix(&daemon, "GET /readyz", b"");
    assert_eq!((answer.status, answer.json()["ready"].as_bool()), (503, Some(false)), "{answer:?}");
    let reasons = answer.json()["reasons"].clone();
    let journal = reasons.as_array().unwrap().iter().find(|reason| reason["component"] == "journal").unwrap().clone();
    assert_eq!(journal["status"], "failing");
    assert!(journal["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{journal}");
    assert!(journal["hint"].is_string(), "{journal}");

    // Strangers hear which part it is, and nothing of where the state lies.
    let answer = loopback(&daemon, "GET /readyz", &[("Host", &daemon.address())]);
    assert_eq!(answer.status, 503);
    assert!(answer.json()["reasons"].as_array().unwrap().iter().any(|reason| reason["component"] == "journal"));
    assert!(!answer.body.contains(&*daemon.state_root.to_string_lossy()), "{answer:?}");
}

/// Every line of every log file, oldest first.
fn log_lines(daemon: &Daemon) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(daemon.state_root.join("logs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_by_key(|path| {
        std::cmp::Reverse(path.extension().and_then(|number| number.to_str()?.parse::<u32>().ok()))
    });
    let lines = files.iter().flat_map(|path| {
        assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    lines.map(|line| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[tokio::test]
async fn the_log_rotates_and_names_who_did_what() {
    let place = Place::new()
        .with_script(WRITES)
        .with("PALYRA_LOG_FORMAT", "json")
        .with("PALYRA_LOG_LEVEL", "trace")
        .with("PALYRA_LOG_FILE_MAX_BYTES", "65536")
        .with("PALYRA_LOG_FILE_KEEP", "1000");
    let daemon = place.start().await;
    run_to_its_end(&daemon).await;
    // Each of these leaves a line: a client that does not speak HTTP.
    for _ in 0..600 {
        let mut stream = UnixStream::connect(daemon.state_root.join("palyrad.sock")).unwrap();
        stream.write_all(b"this is not HTTP at all\r\n\r\n").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    daemon.client.stop_daemon().await.unwrap();
    eventually("the end of the log", || {
        std::fs::read_to_string(daemon.state_root.join("logs/palyrad.log")).unwrap().contains("\"stopped\"")
    })
    .await;
    assert!(daemon.state_root.join("logs/palyrad.log.1").exists(), "at this level it has rotated");
    let lines = log_lines(&daemon);
    assert_eq!(lines.iter().filter(|line| line["fields"]["message"] == "ready").count(), 1);
    let stop = lines.iter().find(|line| line["fields"]["message"] == "stopping on request").unwrap();
    assert_eq!(stop["spans"][0]["command"], "daemon.stop", "{stop}");
    assert!(stop["spans"][0]["principal"].as_str().is_some_and(|who| !who.is_empty()), "{stop}");
    let everything = format!("{lines:?}");
    for content in ["the-prompt-of-the-person", "the-content-of-the-file", "the-answer-of-the-model"] {
        assert!(!everything.contains(content), "the log holds {content}");
    }
}

#[tokio::test]
async fn a_run_is_traced_without_its_contents() {
    let collector = Collector::start().await;
    let place = Place::new()
        .with_script(WRITES)
        .with("PALYRA_TELEMETRY_OTLP_ENDPOINT", &format!("http://{}", collector.address))
        .with("PALYRA_TELEMETRY_METRIC_INTERVAL_SECONDS", "1");
    let daemon = place.start().await;
    run_to_its_end(&daemon).await;
    eventually("the arrival of numbers", || collector.metrics().contains_key("palyra.journal_appends")).await;
    daemon.client.stop_daemon().await.unwrap();
    assert!(daemon.ended().await.success());
    eventually("the arrival of the run", || collector.spans().iter().any(|span| span.name == "invoke_agent palyra"))
        .await;

    let run = collector.span("invoke_agent palyra");
    let tool = collector.span("execute_tool palyra.fs.write");
    let of_run = attributes(&run.attributes);
    assert_eq!(of_run["palyra.run.reason"], "final_answer");
    assert_eq!((&tool.trace_id, &tool.parent_span_id), (&run.trace_id, &run.span_id));
    let chats: Vec<_> = collector.spans().into_iter().filter(|span| span.name.starts_with("chat")).collect();
    assert_eq!(chats.len(), 2);
    for chat in &chats {
        assert_eq!(chat.parent_span_id, run.span_id);
        assert_eq!(attributes(&chat.attributes)["gen_ai.provider.name"], "scripted");
    }
    assert_eq!(attributes(&collector.span("run.create").attributes)["palyra.outcome"], "ok");
    let everything = collector.everything();
    for content in ["the-prompt-of-the-person", "the-content-of-the-file", "the-answer-of-the-model", "made.txt"] {
        assert!(!everything.contains(content), "the collector got {content}");
    }
}

#[tokio::test]
async fn contents_are_traced_when_the_operator_asks_for_it() {
    let collector = Collector::start().await;
    let place = Place::new()
        .with_script(WRITES)
        .with("PALYRA_TELEMETRY_OTLP_ENDPOINT", &format!("http://{}", collector.address))
        .with("PALYRA_TELEMETRY_CAPTURE_CONTENT", "true");
    let daemon = place.start().await;
    run_to_its_end(&daemon).await;
    daemon.client.stop_daemon().await.unwrap();
    assert!(daemon.ended().await.success());
    eventually("the arrival of the run", || collector.spans().iter().any(|span| span.name == "invoke_agent palyra"))
        .await;
    let tool = attributes(&collector.span("execute_tool palyra.fs.write").attributes);
    assert!(tool["gen_ai.tool.call.arguments"].contains("the-content-of-the-file"), "{tool:?}");
    let everything = collector.everything();
    for content in ["the-prompt-of-the-person", "the-answer-of-the-model"] {
        assert!(everything.contains(content), "the collector did not get {content}: {everything}");
    }
}

#[tokio::test]
async fn neither_a_silent_collector_nor_a_silent_client_holds_up_the_end() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new()
        .with("PALYRA_TELEMETRY_OTLP_ENDPOINT", &format!("http://{}", silent.local_addr().unwrap()))
        .with("PALYRA_TELEMETRY_OTLP_TIMEOUT_SECONDS", "600")
        .with("PALYRA_TELEMETRY_METRIC_INTERVAL_SECONDS", "1");
    let daemon = place.start().await;
    run_to_its_end(&daemon).await;
    let mut half = UnixStream::connect(place.state_root().join("palyrad.sock")).unwrap();
    half.write_all(b"POST /api/v1/runs HTTP/1.1\r\nHost: palyrad\r\nContent-Length: 9\r\n\r\n{").unwrap();
    let client: &Client = &daemon.client;
    client.stop_daemon().await.unwrap();
    assert!(daemon.ended().await.success());
    drop((half, silent));
}
