//! The text is read back by a strict reader: every line, every family, every histogram.

use std::collections::BTreeMap;
use std::time::Duration;

use palyra_common::{RunLifecyclePhase, TerminationReason, Timestamp};

use super::super::{
    AuthFailure, CommandOutcome, MetricsOptions, ModelCall, ModelOutcome, RateLimit, Sample, ToolClass, ToolOutcome,
    Transport,
};
use super::*;

fn busy() -> Metrics {
    let metrics = Metrics::new(MetricsOptions {
        commands: &["run.create", "session.list"],
        started: Timestamp(1_800_000_000_500),
    });
    metrics.command_ended("run.create", Transport::Http, CommandOutcome::Ok, Duration::from_micros(1_500));
    metrics.command_ended("run.create", Transport::Http, CommandOutcome::Ok, Duration::from_secs(9));
    metrics.command_ended("no.such", Transport::Grpc, CommandOutcome::Validation, Duration::ZERO);
    metrics.run_started();
    metrics.run_ended(RunLifecyclePhase::Completed, TerminationReason::FinalAnswer);
    metrics.model_called(&ModelCall {
        provider: "scripted",
        model: "m",
        outcome: ModelOutcome::Ok,
        duration: Duration::from_millis(30),
        input_tokens: 120,
        output_tokens: 7,
    });
    metrics.tool_called(ToolClass::Mcp, ToolOutcome::Denied, Duration::from_millis(1));
    metrics.rate_limited(RateLimit::Login);
    metrics.auth_failed(AuthFailure::Expired);
    metrics.sample(Sample { runs_active: 2, approvals_open: Some(1), journal_appends: 40, journal_bytes: Some(4096) });
    metrics
}

/// Reads the text format: families with their kind, samples by their whole left side. Panics at the first oddity.
fn read(text: &str, format: Exposition) -> (BTreeMap<String, String>, BTreeMap<String, f64>) {
    let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let mut current = String::new();
    let body = match format {
        Exposition::OpenMetrics => text.strip_suffix("# EOF\n").expect("the text ends with EOF"),
        Exposition::Prometheus => text,
    };
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            current = rest.split(' ').next().unwrap().to_owned();
            assert!(!kinds.contains_key(&current), "{current} comes twice");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "the type follows the help");
            kinds.insert(name.to_owned(), kind.to_owned());
        } else {
            let (left, value) = line.rsplit_once(' ').unwrap();
            let name = left.split('{').next().unwrap();
            let rest = name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{name} is not of {current}"));
            let expected: &[&str] = match (kinds[&current].as_str(), format) {
                ("counter", Exposition::OpenMetrics) => &["_total"],
                ("histogram", _) => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(expected.contains(&rest), "{line}");
            assert!(samples.insert(left.to_owned(), value.parse().unwrap()).is_none(), "{left} comes twice");
        }
    }
    (kinds, samples)
}

#[test]
fn both_formats_say_the_same() {
    let metrics = busy();
    let (kinds, samples) = read(&metrics.render(Exposition::Prometheus), Exposition::Prometheus);
    let (open_kinds, open_samples) = read(&metrics.render(Exposition::OpenMetrics), Exposition::OpenMetrics);
    assert_eq!(kinds.len(), open_kinds.len());
    assert_eq!(samples.keys().collect::<Vec<_>>(), open_samples.keys().collect::<Vec<_>>());
    assert_eq!(kinds["palyra_commands_total"], "counter");
    assert_eq!(open_kinds["palyra_commands"], "counter");
    for (name, value) in [
        (r#"palyra_commands_total{command="run.create",transport="http",outcome="ok"}"#, 2.0),
        (r#"palyra_commands_total{command="other",transport="grpc",outcome="validation"}"#, 1.0),
        (r#"palyra_command_duration_seconds_bucket{command="run.create",le="0.001"}"#, 0.0),
        (r#"palyra_command_duration_seconds_bucket{command="run.create",le="0.0025"}"#, 1.0),
        (r#"palyra_command_duration_seconds_bucket{command="run.create",le="5.0"}"#, 1.0),
        (r#"palyra_command_duration_seconds_bucket{command="run.create",le="+Inf"}"#, 2.0),
        (r#"palyra_command_duration_seconds_count{command="run.create"}"#, 2.0),
        (r#"palyra_command_duration_seconds_sum{command="run.create"}"#, 9.0015),
        (r#"palyra_runs_total{phase="completed",reason="final_answer"}"#, 1.0),
        (r#"palyra_model_tokens_total{kind="input"}"#, 120.0),
        (r#"palyra_tool_calls_total{class="mcp",outcome="denied"}"#, 1.0),
        (r#"palyra_auth_failures_total{reason="expired"}"#, 1.0),
        (r#"palyra_auth_failures_total{reason="peer"}"#, 0.0),
        (r#"palyra_rate_limited_total{limit="login"}"#, 1.0),
        ("palyra_runs_active", 2.0),
        ("palyra_approvals_open", 1.0),
        ("palyra_journal_appends_total", 40.0),
        ("palyra_journal_bytes", 4096.0),
        ("process_start_time_seconds", 1_800_000_000.0),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name}");
    }
    assert!(samples["process_resident_memory_bytes"] > 100_000.0);
}

#[test]
fn histograms_never_shrink_towards_longer_times() {
    let text = busy().render(Exposition::Prometheus);
    let mut last = ("", 0);
    let mut buckets = 0;
    for line in text.lines().filter(|line| line.contains("_bucket{")) {
        let (series, count) = (line.split("le=").next().unwrap(), line.rsplit(' ').next().unwrap().parse().unwrap());
        assert!(series != last.0 || count >= last.1, "{line}");
        last = (series, count);
        buckets += 1;
    }
    assert!(buckets > 30);
}

#[test]
fn guards_count_for_as_long_as_they_live() {
    let metrics = busy();
    let line = |kind: &str| {
        let text = metrics.render(Exposition::Prometheus);
        text.lines().find(|line| line.starts_with(kind)).unwrap().to_owned()
    };
    let connection = metrics.connection_opened(Transport::Quic);
    let streams = [metrics.stream_opened(Transport::Http), metrics.stream_opened(Transport::Http)];
    assert_eq!(line(r#"palyra_connections{transport="quic"}"#), r#"palyra_connections{transport="quic"} 1"#);
    assert_eq!(line(r#"palyra_streams_open{transport="http"}"#), r#"palyra_streams_open{transport="http"} 2"#);
    drop((connection, streams));
    assert_eq!(line(r#"palyra_connections{transport="quic"}"#), r#"palyra_connections{transport="quic"} 0"#);
    assert_eq!(line(r#"palyra_streams_open{transport="http"}"#), r#"palyra_streams_open{transport="http"} 0"#);
}

#[test]
fn label_values_cannot_leave_their_quotes() {
    let mut text = String::new();
    write_sample(&mut text, ("x", ""), &[("a", "say \"no\"\nx 1\\")], None, "1");
    assert_eq!(text, "x{a=\"say \\\"no\\\"\\nx 1\\\\\"} 1\n");
}

#[test]
fn seconds_are_exact() {
    for (micros, text) in [(0, "0.0"), (100, "0.0001"), (2_500, "0.0025"), (1_000_000, "1.0"), (81_920_000, "81.92")] {
        assert_eq!(seconds(micros), text);
    }
}

#[test]
fn the_format_follows_the_accept_header() {
    use Exposition::{OpenMetrics, Prometheus};
    let table = [
        (None, Prometheus),
        (Some("*/*"), Prometheus),
        (Some("text/plain;version=0.0.4;q=1"), Prometheus),
        (Some("application/openmetrics-text"), OpenMetrics),
        (Some("application/openmetrics-text; version=1.0.0; charset=utf-8"), OpenMetrics),
        (Some("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"), OpenMetrics),
        (Some("application/openmetrics-text;version=\"1.0.0\""), OpenMetrics),
        (Some("application/openmetrics-text;version=2.0.0,*/*;q=0.1"), Prometheus),
        (Some("application/openmetrics-text;q=0"), Prometheus),
        (Some(";;;=,=;"), Prometheus),
    ];
    for (accept, expected) in table {
        assert_eq!(Exposition::for_accept(accept), expected, "{accept:?}");
    }
}

#[test]
fn every_family_is_on_its_page() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observability.md")).unwrap();
    let (families, _) = read(&busy().render(Exposition::Prometheus), Exposition::Prometheus);
    for name in families.keys() {
        assert!(page.contains(&format!("| `{name}` |")), "{name} is missing in docs/observability.md");
    }
    let listed = page.lines().filter(|line| line.starts_with("| `palyra_") || line.starts_with("| `process_")).count();
    assert_eq!(listed, families.len(), "the page lists families that are not there");
}
