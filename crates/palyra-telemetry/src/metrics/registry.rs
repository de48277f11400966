//! The registry: every family by name, and the calls that count.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use palyra_common::{RunLifecyclePhase, TerminationReason, Timestamp};

use super::cells::{Counter, Gauge, Histogram, SLOW};
use super::commands::Commands;
use super::family::{Family, Grid};
use super::labels::{
    AuthFailure, CommandOutcome, ModelOutcome, RateLimit, Signal, TokenKind, ToolClass, ToolOutcome, Transport,
};

/// What the registry has to know before it counts.
#[derive(Debug, Clone, Copy)]
pub struct MetricsOptions<'a> {
    /// The names of all commands; others count as `other`.
    pub commands: &'a [&'static str],
    /// When the process started.
    pub started: Timestamp,
}

/// One finished call of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelCall<'a> {
    /// Who runs the model, such as `openai_compatible`.
    pub(crate) provider: &'a str,
    /// The model that was asked for.
    pub(crate) model: &'a str,
    /// How it ended.
    pub(crate) outcome: ModelOutcome,
    /// How long it took.
    pub(crate) duration: Duration,
    /// Tokens read, where the provider says so.
    pub(crate) input_tokens: u64,
    /// Tokens written, where the provider says so.
    pub(crate) output_tokens: u64,
}

/// Numbers that are kept elsewhere and looked up when somebody asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// Runs that are not terminal.
    pub runs_active: u64,
    /// Questions that wait for a person; unknown if nobody could be asked.
    pub approvals_open: Option<u64>,
    /// Records on the journal.
    pub journal_appends: u64,
    /// Bytes of the journal on disk; unknown if nobody could look.
    pub journal_bytes: Option<u64>,
}

/// Somebody who records durations a second time, for a collector.
pub(crate) trait Mirror: Send + Sync {
    fn command(&self, command: &'static str, outcome: CommandOutcome, duration: Duration);
    fn model_call(&self, call: &ModelCall<'_>);
    fn tool_call(&self, class: ToolClass, outcome: ToolOutcome, duration: Duration);
}

/// All numbers; clones count into the same ones.
#[derive(Clone)]
pub struct Metrics(pub(super) Arc<Families>);

pub(super) struct Families {
    pub(super) started: Timestamp,
    pub(super) commands: Commands,
    pub(super) connections: Family<Transport, Gauge>,
    pub(super) streams: Family<Transport, Gauge>,
    pub(super) runs_started: Counter,
    pub(super) runs_ended: Grid<RunLifecyclePhase, TerminationReason, Counter>,
    pub(super) runs_active: Gauge,
    pub(super) model_calls: Family<ModelOutcome, Counter>,
    pub(super) model_tokens: Family<TokenKind, Counter>,
    pub(super) model_duration: Histogram,
    pub(super) tool_calls: Grid<ToolClass, ToolOutcome, Counter>,
    pub(super) tool_duration: Family<ToolClass, Histogram>,
    pub(super) approvals_open: Gauge,
    pub(super) journal_appends: Counter,
    pub(super) journal_bytes: Gauge,
    pub(super) rate_limited: Family<RateLimit, Counter>,
    pub(super) auth_failures: Family<AuthFailure, Counter>,
    pub(super) log_lines_dropped: Counter,
    pub(super) telemetry_dropped: Family<Signal, Counter>,
    mirror: OnceLock<Box<dyn Mirror>>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").field("started", &self.0.started).finish_non_exhaustive()
    }
}

impl Metrics {
    /// A registry in which nothing was counted yet.
    #[must_use]
    pub fn new(options: MetricsOptions<'_>) -> Self {
        Self(Arc::new(Families {
            started: options.started,
            commands: Commands::new(options.commands),
            connections: Family::new("transport", Gauge::default),
            streams: Family::new("transport", Gauge::default),
            runs_started: Counter::default(),
            runs_ended: Grid::new(("phase", "reason"), Counter::default),
            runs_active: Gauge::default(),
            model_calls: Family::new("outcome", Counter::default),
            model_tokens: Family::new("kind", Counter::default),
            model_duration: Histogram::new(SLOW),
            tool_calls: Grid::new(("class", "outcome"), Counter::default),
            tool_duration: Family::new("class", || Histogram::new(SLOW)),
            approvals_open: Gauge::default(),
            journal_appends: Counter::default(),
            journal_bytes: Gauge::default(),
            rate_limited: Family::new("limit", Counter::default),
            auth_failures: Family::new("reason", Counter::default),
            log_lines_dropped: Counter::default(),
            telemetry_dropped: Family::new("signal", Counter::default),
            mirror: OnceLock::new(),
        }))
    }

    /// Counts a command that was answered.
    pub(crate) fn command_ended(&self, name: &str, transport: Transport, outcome: CommandOutcome, duration: Duration) {
        let name = self.0.commands.ended(name, transport, outcome, duration);
        if let Some(mirror) = self.0.mirror.get() {
            mirror.command(name, outcome, duration);
        }
    }

    /// Counts a connection for as long as the guard lives.
    #[must_use]
    pub fn connection_opened(&self, transport: Transport) -> OpenGuard {
        OpenGuard::new(self, Open::Connection, transport)
    }

    /// Counts a stream of events for as long as the guard lives.
    #[must_use]
    pub fn stream_opened(&self, transport: Transport) -> OpenGuard {
        OpenGuard::new(self, Open::Stream, transport)
    }

    /// Counts a run that was accepted.
    pub(crate) fn run_started(&self) {
        self.0.runs_started.add(1);
    }

    /// Counts a run that reached a terminal phase.
    pub(crate) fn run_ended(&self, phase: RunLifecyclePhase, reason: TerminationReason) {
        self.0.runs_ended.with(phase, reason, |count| count.add(1));
    }

    /// Counts a call of a model.
    pub(crate) fn model_called(&self, call: &ModelCall<'_>) {
        self.0.model_calls.with(call.outcome, |count| count.add(1));
        self.0.model_tokens.with(TokenKind::Input, |count| count.add(call.input_tokens));
        self.0.model_tokens.with(TokenKind::Output, |count| count.add(call.output_tokens));
        self.0.model_duration.observe(call.duration);
        if let Some(mirror) = self.0.mirror.get() {
            mirror.model_call(call);
        }
    }

    /// Counts a call of a tool.
    pub(crate) fn tool_called(&self, class: ToolClass, outcome: ToolOutcome, duration: Duration) {
        self.0.tool_calls.with(class, outcome, |count| count.add(1));
        self.0.tool_duration.with(class, |histogram| histogram.observe(duration));
        if let Some(mirror) = self.0.mirror.get() {
            mirror.tool_call(class, outcome, duration);
        }
    }

    /// Counts a request that a limit turned away.
    pub fn rate_limited(&self, limit: RateLimit) {
        self.0.rate_limited.with(limit, |count| count.add(1));
    }

    /// Counts a caller that was turned away.
    pub fn auth_failed(&self, reason: AuthFailure) {
        self.0.auth_failures.with(reason, |count| count.add(1));
    }

    /// Counts lines that could not be logged.
    pub fn log_lines_dropped(&self, lines: u64) {
        self.0.log_lines_dropped.add(lines);
    }

    /// Counts what a collector did not get.
    pub fn telemetry_dropped(&self, signal: Signal, items: u64) {
        self.0.telemetry_dropped.with(signal, |count| count.add(items));
    }

    /// Takes over numbers that are kept elsewhere; what is unknown stays what it was.
    pub fn sample(&self, sample: Sample) {
        self.0.runs_active.set(sample.runs_active);
        self.0.journal_appends.raise_to(sample.journal_appends);
        if let Some(open) = sample.approvals_open {
            self.0.approvals_open.set(open);
        }
        if let Some(bytes) = sample.journal_bytes {
            self.0.journal_bytes.set(bytes);
        }
    }

    /// Durations go to this as well from now on; only the first one counts.
    pub(crate) fn mirror_to(&self, mirror: Box<dyn Mirror>) {
        let _ = self.0.mirror.set(mirror);
    }
}

#[derive(Debug, Clone, Copy)]
enum Open {
    Connection,
    Stream,
}

/// Something that is open; dropping it says that it is closed.
#[derive(Debug)]
pub struct OpenGuard {
    metrics: Metrics,
    what: Open,
    transport: Transport,
}

impl OpenGuard {
    fn new(metrics: &Metrics, what: Open, transport: Transport) -> Self {
        let guard = Self { metrics: metrics.clone(), what, transport };
        guard.count(1);
        guard
    }

    fn count(&self, amount: i64) {
        let family = match self.what {
            Open::Connection => &self.metrics.0.connections,
            Open::Stream => &self.metrics.0.streams,
        };
        family.with(self.transport, |gauge| gauge.add(amount));
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.count(-1);
    }
}
