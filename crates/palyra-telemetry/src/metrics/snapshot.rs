//! The list of families with their names, and what they hold at one moment. Prometheus and collectors both read this list.

use palyra_common::BuildInfo;

use super::family::{Cell as _, Labels, Value};
use super::process;
use super::registry::Metrics;

/// What kind of number a family holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One family at one moment.
#[derive(Debug)]
pub(crate) struct FamilySnapshot {
    /// The name, without the `_total` of counters.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: Kind,
    pub(crate) samples: Vec<(Labels, Value)>,
}

fn family(name: &'static str, help: &'static str, kind: Kind, samples: Vec<(Labels, Value)>) -> FamilySnapshot {
    FamilySnapshot { name, help, kind, samples }
}

fn alone(value: Value) -> Vec<(Labels, Value)> {
    vec![(Vec::new(), value)]
}

fn gauge(value: u64) -> Vec<(Labels, Value)> {
    alone(Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn build_labels() -> Labels {
    let build = BuildInfo::current();
    vec![
        ("version", build.version),
        ("commit", build.commit.unwrap_or_default()),
        ("target", build.target),
        ("profile", build.profile),
    ]
}

impl Metrics {
    /// Every family, in the order of its page.
    pub(crate) fn snapshot(&self) -> Vec<FamilySnapshot> {
        use Kind::{Counter, Gauge, Histogram};
        let all = &self.0;
        let started = u64::try_from(all.started.0 / 1000).unwrap_or_default();
        vec![
            family("palyra_commands", "Commands answered.", Counter, all.commands.counts()),
            family("palyra_command_duration_seconds", "Command duration.", Histogram, all.commands.durations()),
            family("palyra_connections", "Open connections.", Gauge, all.connections.samples()),
            family("palyra_streams_open", "Open event streams.", Gauge, all.streams.samples()),
            family("palyra_runs_started", "Runs started or resumed.", Counter, alone(all.runs_started.value())),
            family("palyra_runs", "Runs that ended, by phase and reason.", Counter, all.runs_ended.samples()),
            family("palyra_runs_active", "Runs that have not ended.", Gauge, alone(all.runs_active.value())),
            family("palyra_model_calls", "Model calls.", Counter, all.model_calls.samples()),
            family(
                "palyra_model_tokens",
                "Tokens consumed and produced by models.",
                Counter,
                all.model_tokens.samples(),
            ),
            family(
                "palyra_model_call_duration_seconds",
                "Model call duration.",
                Histogram,
                alone(all.model_duration.value()),
            ),
            family("palyra_tool_calls", "Tool calls, by class.", Counter, all.tool_calls.samples()),
            family("palyra_tool_call_duration_seconds", "Tool call duration.", Histogram, all.tool_duration.samples()),
            family("palyra_approvals_open", "Pending approvals.", Gauge, alone(all.approvals_open.value())),
            family("palyra_journal_appends", "Records in the journal.", Counter, alone(all.journal_appends.value())),
            family(
                "palyra_journal_bytes",
                "Size of the journal on disk, in bytes.",
                Gauge,
                alone(all.journal_bytes.value()),
            ),
            family("palyra_rate_limited", "Requests rejected by a rate limit.", Counter, all.rate_limited.samples()),
            family("palyra_auth_failures", "Callers rejected, by reason.", Counter, all.auth_failures.samples()),
            family(
                "palyra_log_lines_dropped",
                "Log lines that could not be written.",
                Counter,
                alone(all.log_lines_dropped.value()),
            ),
            family(
                "palyra_telemetry_dropped",
                "Spans and metric batches that could not be exported.",
                Counter,
                all.telemetry_dropped.samples(),
            ),
            family("palyra_build_info", "Build information; always 1.", Gauge, vec![(build_labels(), Value::Gauge(1))]),
            family(
                "process_start_time_seconds",
                "When the process started, in seconds since 1970.",
                Gauge,
                gauge(started),
            ),
            family(
                "process_resident_memory_bytes",
                "Resident memory of the process, in bytes.",
                Gauge,
                process::resident_bytes().map(gauge).unwrap_or_default(),
            ),
            family(
                "process_open_fds",
                "Open file descriptors of the process.",
                Gauge,
                process::open_descriptors().map(gauge).unwrap_or_default(),
            ),
        ]
    }
}
