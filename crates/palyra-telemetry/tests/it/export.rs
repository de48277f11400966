//! What a collector gets, what it never gets, and what a collector that is not there costs.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::common::v1::any_value::Value as Kind;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use palyra_common::config::{LogFormat, LogLevel};
use palyra_common::{RedactedUrl, RunId, SecretString, SessionId, Timestamp};
use palyra_telemetry::{
    ContentCapture, Exposition, LogOptions, Metrics, MetricsOptions, OtlpOptions, Telemetry, TelemetryOptions,
    Transport, work,
};
use tracing::Dispatch;

use crate::collector::{Collector, attributes, eventually};

fn metrics() -> Metrics {
    Metrics::new(MetricsOptions { commands: &["run.create"], started: Timestamp(1_800_000_000_000) })
}

fn start(otlp: OtlpOptions, metrics: &Metrics) -> (Dispatch, Telemetry) {
    let log = LogOptions { level: LogLevel::Error, format: LogFormat::Text, file: None };
    Telemetry::prepare(TelemetryOptions { log, metrics: metrics.clone(), otlp: Some(otlp) }).unwrap()
}

fn to(endpoint: String) -> OtlpOptions {
    let mut options = OtlpOptions::to(RedactedUrl::new(endpoint));
    options.timeout = Duration::from_secs(5);
    options.span_interval = Duration::from_millis(20);
    options.metric_interval = Duration::from_millis(50);
    options
}

/// A run with one model call and one tool call, and a command that began it.
fn work_a_little() -> (RunId, SessionId) {
    let (run_id, session_id) = (RunId::generate(), SessionId::generate());
    {
        let command = work::command_span("run.create", Transport::Http, "user:alice");
        let _inside = command.enter();
        command.record("outcome", "ok");
        command.record("run_id", tracing::field::display(run_id));
    }
    let run = work::run_span(run_id, session_id);
    let _inside = run.enter();
    {
        let call = work::model_call_span("scripted", "tiny-1");
        let _inside = call.enter();
        tracing::trace!(target: work::CONTENT_TARGET, input = "the prompt of alice", output = "an answer");
        tracing::error!(path = "/home/alice/private", "a line of the log");
        call.record("input_tokens", 120_u64);
        call.record("output_tokens", 7_u64);
        call.record("outcome", "ok");
    }
    {
        let call = work::tool_call_span("palyra.fs.read", "call-1");
        let _inside = call.enter();
        tracing::trace!(target: work::CONTENT_TARGET, arguments = r#"{"path":"notes.txt"}"#, result = "hunter2");
        call.record("outcome", "error");
        call.record("error", "path_not_found");
    }
    run.record("phase", "completed");
    run.record("reason", "final_answer");
    (run_id, session_id)
}

fn shut_down(telemetry: Telemetry) -> tokio::task::JoinHandle<()> {
    tokio::task::spawn_blocking(move || telemetry.shutdown(Duration::from_secs(10)))
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_and_numbers_arrive_in_the_words_of_the_conventions() {
    let collector = Collector::start().await;
    let metrics = metrics();
    let mut options = to(format!("http://{}", collector.address));
    options.headers.push(("authorization".to_owned(), SecretString::new("Bearer collector-token".to_owned())));
    let (dispatch, telemetry) = start(options, &metrics);
    let (run_id, session_id) = tracing::dispatcher::with_default(&dispatch, work_a_little);
    eventually("the arrival of four spans", || collector.spans().len() == 4).await;
    eventually("the arrival of numbers", || collector.metrics().contains_key("gen_ai.client.token.usage")).await;
    shut_down(telemetry).await.unwrap();

    let run = collector.span("invoke_agent palyra");
    let of_run = attributes(&run.attributes);
    assert_eq!(of_run["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(of_run["palyra.run.id"], run_id.to_string());
    assert_eq!(of_run["gen_ai.conversation.id"], session_id.to_string());
    assert_eq!(of_run["palyra.run.reason"], "final_answer");
    assert!(run.parent_span_id.is_empty(), "a run belongs to no command");

    let chat = collector.span("chat tiny-1");
    let of_chat = attributes(&chat.attributes);
    assert_eq!(chat.kind, SpanKind::Client as i32);
    assert_eq!(chat.parent_span_id, run.span_id);
    assert_eq!(chat.trace_id, run.trace_id);
    assert_eq!(of_chat["gen_ai.provider.name"], "scripted");
    assert_eq!(of_chat["gen_ai.request.model"], "tiny-1");
    assert_eq!(of_chat["gen_ai.usage.input_tokens"], "120");
    assert_eq!(of_chat["gen_ai.usage.output_tokens"], "7");
    let tokens = chat.attributes.iter().find(|pair| pair.key == "gen_ai.usage.input_tokens").unwrap();
    assert_eq!(tokens.value.clone().unwrap().value, Some(Kind::IntValue(120)), "a number, not its digits");

    let tool = collector.span("execute_tool palyra.fs.read");
    assert_eq!(attributes(&tool.attributes)["error.type"], "path_not_found");
    assert_eq!(tool.status.clone().unwrap().message, "path_not_found");
    assert_eq!(tool.parent_span_id, run.span_id);

    let command = collector.span("run.create");
    assert_eq!(command.kind, SpanKind::Server as i32);
    assert_eq!(attributes(&command.attributes)["palyra.principal"], "user:alice");

    let resource = &collector.resources()[0];
    assert_eq!(resource["service.name"], "palyrad");
    assert!(resource.contains_key("service.version"));
    assert!(collector.tokens().iter().all(|token| token == "Bearer collector-token"));

    let numbers = collector.metrics();
    let Some(Data::Sum(calls)) = numbers["palyra.tool_calls"].data.clone() else { panic!("not a sum") };
    let point = attributes(&calls.data_points[0].attributes);
    assert_eq!((point["class"].as_str(), point["outcome"].as_str()), ("files", "error"));
    assert!(calls.is_monotonic);
    let Some(Data::Histogram(tokens)) = numbers["gen_ai.client.token.usage"].data.clone() else {
        panic!("not a histogram")
    };
    let total: f64 = tokens.data_points.iter().filter_map(|point| point.sum).sum();
    assert!((total - 127.0).abs() < f64::EPSILON, "{total}");
    assert!(numbers.contains_key("gen_ai.client.operation.duration"));
    assert!(numbers.contains_key("process.resident_memory_bytes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_becomes_part_of_its_callers_trace() {
    let collector = Collector::start().await;
    let (dispatch, telemetry) = start(to(format!("http://{}", collector.address)), &metrics());
    tracing::dispatcher::with_default(&dispatch, || {
        let command = work::command_span("run.create", Transport::Http, "user:alice");
        work::continue_trace(&command, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        command.in_scope(|| drop(work::tool_call_span("palyra.fs.read", "c1").entered()));
    });
    eventually("the arrival of two spans", || collector.spans().len() == 2).await;
    shut_down(telemetry).await.unwrap();
    let (command, tool) = (collector.span("run.create"), collector.span("execute_tool palyra.fs.read"));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&command.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(hex(&command.parent_span_id), "00f067aa0ba902b7");
    assert_eq!((tool.trace_id, tool.parent_span_id), (command.trace_id, command.span_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn content_stays_here_unless_it_is_asked_for() {
    for (content, leaves) in [(ContentCapture::Off, false), (ContentCapture::On, true)] {
        let collector = Collector::start().await;
        let mut options = to(format!("http://{}", collector.address));
        options.content = content;
        let (dispatch, telemetry) = start(options, &metrics());
        tracing::dispatcher::with_default(&dispatch, work_a_little);
        eventually("the arrival of four spans", || collector.spans().len() == 4).await;
        shut_down(telemetry).await.unwrap();
        let everything = collector.everything();
        for text in ["the prompt of alice", "an answer", "notes.txt", "hunter2"] {
            assert_eq!(everything.contains(text), leaves, "{text} with {content:?}");
        }
        assert!(!everything.contains("/home/alice/private"), "lines of the log are not exported");
        if leaves {
            let chat = attributes(&collector.span("chat tiny-1").attributes);
            assert_eq!(chat["gen_ai.input.messages"], "the prompt of alice");
            let tool = attributes(&collector.span("execute_tool palyra.fs.read").attributes);
            assert_eq!(tool["gen_ai.tool.call.arguments"], r#"{"path":"notes.txt"}"#);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_behind_tls_is_trusted_by_its_authority_alone() {
    let (collector, authority) = Collector::start_with_tls().await;
    let endpoint = format!("https://localhost:{}", collector.address.port());
    let metrics = metrics();
    let (dispatch, telemetry) = start(to(endpoint.clone()), &metrics);
    tracing::dispatcher::with_default(&dispatch, work_a_little);
    eventually("the refusal of an unknown authority", || dropped(&metrics, "traces") == 4).await;
    shut_down(telemetry).await.unwrap();
    assert_eq!(collector.spans().len(), 0);

    let mut options = to(endpoint);
    options.ca_pem = Some(authority.into_bytes());
    let (dispatch, telemetry) = start(options, &metrics);
    tracing::dispatcher::with_default(&dispatch, work_a_little);
    eventually("the arrival of four spans", || collector.spans().len() == 4).await;
    shut_down(telemetry).await.unwrap();
}

fn dropped(metrics: &Metrics, signal: &str) -> u64 {
    let text = metrics.render(Exposition::Prometheus);
    let name = format!("palyra_telemetry_dropped_total{{signal=\"{signal}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(name.as_str())).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_gone_costs_a_counted_drop() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let metrics = metrics();
    let mut options = to(format!("http://{gone}"));
    options.timeout = Duration::from_millis(200);
    let (dispatch, telemetry) = start(options, &metrics);
    tracing::dispatcher::with_default(&dispatch, work_a_little);
    eventually("counting four spans as dropped", || dropped(&metrics, "traces") == 4).await;
    eventually("counting numbers as dropped", || dropped(&metrics, "metrics") > 0).await;
    shut_down(telemetry).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_holds_up_neither_work_nor_the_end() {
    // It accepts connections into its backlog and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = metrics();
    let mut options = to(format!("http://{}", silent.local_addr().unwrap()));
    options.timeout = Duration::from_secs(600);
    let (dispatch, telemetry) = start(options, &metrics);
    tracing::dispatcher::with_default(&dispatch, || (0..1_500).for_each(|_| _ = work_a_little()));
    assert!(dropped(&metrics, "traces") >= 6_000 - 2_048, "what does not fit the queue is dropped at once");
    let began = Instant::now();
    let ending = tokio::task::spawn_blocking(move || telemetry.shutdown(Duration::from_millis(300)));
    tokio::time::timeout(Duration::from_secs(60), ending)
        .await
        .expect("the end does not wait for the collector")
        .unwrap();
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sampling_means_no_spans_but_all_counts() {
    let collector = Collector::start().await;
    let metrics = metrics();
    let mut options = to(format!("http://{}", collector.address));
    options.sample_percent = 0;
    let (dispatch, telemetry) = start(options, &metrics);
    tracing::dispatcher::with_default(&dispatch, work_a_little);
    eventually("the arrival of numbers", || collector.metrics().contains_key("palyra.model_calls")).await;
    shut_down(telemetry).await.unwrap();
    assert_eq!(collector.spans().len(), 0);
    assert_eq!(dropped(&metrics, "traces"), 0, "what was not to be sent was not lost");
    assert!(metrics.render(Exposition::Prometheus).contains(r#"palyra_model_calls_total{outcome="ok"} 1"#));
}
