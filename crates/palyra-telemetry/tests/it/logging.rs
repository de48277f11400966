//! The log as a process writes it: formats, ids in every line, the level, the file, and a disk that is full.

use std::path::Path;
use std::process::Command;

use palyra_common::config::{LogFormat, LogLevel};
use palyra_common::{RunId, SessionId, Timestamp};
use palyra_telemetry::{
    Exposition, LogFile, LogOptions, Metrics, MetricsOptions, Telemetry, TelemetryOptions, Transport, work,
};
use serde_json::Value;

/// Lines of Palyra itself are logged from the chosen level on, those of others only if something looks wrong.
const TARGET: &str = "palyra_daemon";

fn metrics() -> Metrics {
    Metrics::new(MetricsOptions { commands: &["run.create"], started: Timestamp(0) })
}

fn options(path: &Path, format: LogFormat, level: LogLevel) -> LogOptions {
    LogOptions { level, format, file: Some(LogFile { path: path.to_owned(), max_bytes: 4_000, keep: 100 }) }
}

fn with_log(options: LogOptions, act: impl FnOnce(&Telemetry)) {
    let (dispatch, telemetry) =
        Telemetry::prepare(TelemetryOptions { log: options, metrics: metrics(), otlp: None }).unwrap();
    tracing::dispatcher::with_default(&dispatch, || act(&telemetry));
    telemetry.flush_log();
}

#[test]
fn every_line_of_work_names_its_run_session_and_principal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palyrad.log");
    let (run_id, session_id) = (RunId::generate(), SessionId::generate());
    // Even when only errors are logged, spans of work are there for them.
    with_log(options(&path, LogFormat::Json, LogLevel::Error), |_| {
        work::run_span(run_id, session_id).in_scope(|| {
            tracing::info!(target: TARGET, "not said");
            work::tool_call_span("palyra.fs.read", "c1").in_scope(|| tracing::error!(reason = "x", "said"));
        });
        work::command_span("run.create", Transport::Unix, "user:alice").in_scope(|| tracing::error!("refused"));
    });
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0]["fields"]["message"], "said");
    assert_eq!(lines[0]["spans"][0]["run_id"], run_id.to_string());
    assert_eq!(lines[0]["spans"][0]["session_id"], session_id.to_string());
    assert_eq!(lines[0]["spans"][1]["tool"], "palyra.fs.read");
    assert_eq!(lines[1]["spans"][0]["principal"], "user:alice");
}

#[test]
fn text_is_for_people_and_a_line_stays_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palyrad.log");
    let run_id = RunId::generate();
    with_log(options(&path, LogFormat::Text, LogLevel::Info), |_| {
        work::run_span(run_id, SessionId::generate()).in_scope(|| {
            tracing::warn!(answer = "a\u{1b}[31mred\nINFO forged line", "hostile");
        });
        tracing::error!(target: work::CONTENT_TARGET, input = "the prompt of alice");
    });
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("WARN") && text.contains(&format!("run_id={run_id}")), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours in a file, and none that somebody sent");
    assert!(!text.contains("prompt of alice"));
}

#[test]
fn the_level_changes_while_the_daemon_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palyrad.log");
    with_log(options(&path, LogFormat::Text, LogLevel::Warn), |telemetry| {
        let say = |what: &str| tracing::debug!(target: TARGET, "{what}");
        say("one");
        telemetry.set_level(LogLevel::Debug);
        say("two");
        telemetry.set_level(LogLevel::Error);
        say("three");
    });
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("two") && !text.contains("one") && !text.contains("three"), "{text}");
}

#[test]
fn many_threads_and_many_rotations_lose_no_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("logs/palyrad.log");
    let log = options(&path, LogFormat::Json, LogLevel::Info);
    let (dispatch, telemetry) = Telemetry::prepare(TelemetryOptions { log, metrics: metrics(), otlp: None }).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let dispatch = dispatch.clone();
            scope.spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    (0..400).for_each(|number| tracing::info!(target: TARGET, thread, number, "a line"));
                });
            });
        }
    });
    telemetry.flush_log();
    let mut found = Vec::new();
    let mut files = 0;
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        files += 1;
        for line in std::fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let line: Value = serde_json::from_str(line).expect("every line is whole");
            found.push((line["fields"]["thread"].as_u64().unwrap(), line["fields"]["number"].as_u64().unwrap()));
        }
    }
    found.sort_unstable();
    let expected: Vec<(u64, u64)> = (0..4).flat_map(|thread| (0..400).map(move |number| (thread, number))).collect();
    assert!(found == expected, "{} of {} lines", found.len(), expected.len());
    assert!(files > 10, "{files} files");
}

/// Set for the child that logs on a small disk.
const CHILD: &str = "PALYRA_TEST_SMALL_DISK";

/// The child: fills a disk of its own with lines, makes room and goes on.
#[test]
fn logs_on_a_small_disk() {
    let Some(disk) = std::env::var_os(CHILD) else { return };
    let disk = Path::new(&disk);
    let metrics = metrics();
    let log = LogOptions {
        level: LogLevel::Info,
        format: LogFormat::Json,
        file: Some(LogFile { path: disk.join("palyrad.log"), max_bytes: 1 << 20, keep: 1 }),
    };
    let telemetry = Telemetry::start(TelemetryOptions { log, metrics: metrics.clone(), otlp: None }).unwrap();
    std::fs::write(disk.join("room"), vec![0; 32 * 1024]).unwrap();
    for number in 0..2_000 {
        tracing::info!(target: TARGET, number, "a line of about one hundred and fifty bytes, most of which are words without meaning");
    }
    telemetry.flush_log();
    std::fs::remove_file(disk.join("room")).unwrap();
    tracing::info!(target: TARGET, "there is room again");
    telemetry.flush_log();
    telemetry.flush_log();
    let dropped = metrics.render(Exposition::Prometheus);
    let dropped = dropped.lines().find_map(|line| line.strip_prefix("palyra_log_lines_dropped_total ")).unwrap();
    let dropped: usize = dropped.parse().unwrap();
    let text = std::fs::read_to_string(disk.join("palyrad.log")).unwrap();
    let kept = text.lines().filter(|line| line.contains("a line of about")).count();
    for line in text.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "a line is whole or not there: {line}");
    }
    assert!(kept > 50 && dropped > 500, "{kept} kept, {dropped} dropped");
    assert_eq!(kept + dropped, 2_000, "every line is either kept or counted");
    assert!(text.contains("there is room again"), "it goes on when there is room");
    let missing = text.lines().find(|line| line.contains("log lines are missing here")).expect("the gap is said");
    assert!(missing.contains(&format!("\"missing\":{dropped}")), "{missing}");
}

#[test]
fn a_full_disk_costs_lines_that_are_counted_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().to_str().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=128k palyra {disk} && exec \"$0\" --exact logging::logs_on_a_small_disk --nocapture 2>{disk}.err"
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, disk)
        .output()
        .expect("`unshare` starts");
    let errors = std::fs::read_to_string(format!("{disk}.err")).unwrap_or_default();
    let _ = std::fs::remove_file(format!("{disk}.err"));
    let complaint: Vec<&str> = errors.lines().filter(|line| !line.starts_with('{')).collect();
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), complaint.join("\n"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

/// Set for the child whose standard error is its log file.
const SAME_FILE: &str = "PALYRA_TEST_SAME_FILE";

/// The child: logs to the file that is its standard error too.
#[test]
fn logs_to_its_own_standard_error() {
    let Some(path) = std::env::var_os(SAME_FILE) else { return };
    let log = options(Path::new(&path), LogFormat::Text, LogLevel::Info);
    let telemetry = Telemetry::start(TelemetryOptions { log, metrics: metrics(), otlp: None }).unwrap();
    tracing::info!(target: TARGET, "said once");
    telemetry.shutdown(std::time::Duration::ZERO);
}

#[test]
fn a_log_file_that_is_standard_error_gets_each_line_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palyrad.log");
    for (stderr, on_stderr) in [(path.clone(), 0), (directory.path().join("elsewhere"), 1)] {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&stderr).unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "logging::logs_to_its_own_standard_error", "--nocapture"])
            .env(SAME_FILE, &path)
            .stdout(std::process::Stdio::null())
            .stderr(file)
            .status()
            .unwrap();
        assert!(status.success());
        let count = |path: &Path| std::fs::read_to_string(path).unwrap().matches("said once").count();
        assert_eq!(count(&path), 1, "in the log");
        if stderr != path {
            assert_eq!(count(&stderr), on_stderr, "on standard error");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
