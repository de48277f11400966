//! Starting and ending all of it: the log, the counting of work and the export to a collector, as one `tracing` subscriber.

use std::time::Duration;

use palyra_common::config::{LogFormat, LogLevel};
use tracing::Dispatch;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, Registry, fmt};

use crate::error::TelemetryError;
use crate::log::{LevelHandle, Lines, LogOptions, level_filter};
use crate::metrics::Metrics;
use crate::otlp::{Export, OtlpOptions};
use crate::work::{WorkFilter, WorkLayer};

/// What telemetry is to do.
#[derive(Debug)]
pub struct TelemetryOptions {
    /// How to log.
    pub log: LogOptions,
    /// Where to count.
    pub metrics: Metrics,
    /// A collector to export to; nothing leaves the machine without one.
    pub otlp: Option<OtlpOptions>,
}

/// Running telemetry. Keep it until the process ends, and end it with [`Telemetry::shutdown`] so that nothing is cut off.
#[derive(Debug)]
pub struct Telemetry {
    level: LevelHandle,
    lines: Lines,
    export: Option<Export>,
}

impl Telemetry {
    /// Begins, for the whole process. A process that already has a log keeps it. Exporting needs a Tokio runtime around this call; it does not wait for the
    /// collector.
    ///
    /// # Errors
    /// If the log file cannot be written or the collector's address makes no sense.
    pub fn start(options: TelemetryOptions) -> Result<Self, TelemetryError> {
        let (dispatch, telemetry) = Self::prepare(options)?;
        let _ = tracing::dispatcher::set_global_default(dispatch);
        Ok(telemetry)
    }

    /// Like [`Telemetry::start`], but leaves it to the caller where the subscriber holds.
    ///
    /// # Errors
    /// As [`Telemetry::start`].
    pub fn prepare(options: TelemetryOptions) -> Result<(Dispatch, Self), TelemetryError> {
        let TelemetryOptions { log, metrics, otlp } = options;
        let lines = Lines::open(log.file.as_ref(), &metrics)?;
        let (filter, level) = level_filter(log.level);
        // Nothing is said about a line that cannot be written: saying so would be such a line.
        let layer = fmt::layer::<Registry>().with_writer(lines.clone()).log_internal_errors(false);
        let layer = match log.format {
            LogFormat::Text => layer.with_ansi(lines.coloured()).boxed(),
            LogFormat::Json => layer.json().boxed(),
        };
        let export = otlp.as_ref().map(|options| Export::start(options, &metrics)).transpose()?;
        let exported = export.as_ref().map(Export::layer);
        let subscriber = tracing_subscriber::registry()
            .with(layer.with_filter(filter))
            .with(WorkLayer::new(metrics).with_filter(WorkFilter::SpansOnly))
            .with(exported);
        Ok((Dispatch::new(subscriber), Self { level, lines, export }))
    }

    /// Logs more or less from now on.
    pub fn set_level(&self, level: LogLevel) {
        self.level.set(level);
    }

    /// Waits until the log file has every line so far, for at most a second.
    pub fn flush_log(&self) {
        self.lines.flush();
    }

    /// Sends what is still to be sent and writes what is still to be written, for at most `patience` and a second. Blocks: call it where blocking is allowed.
    pub fn shutdown(self, patience: Duration) {
        if let Some(export) = &self.export {
            export.shutdown(patience);
        }
        self.lines.flush();
    }
}
