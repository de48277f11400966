//! What Palyra says about itself.
//!
//! Work is described once, as `tracing` spans with agreed names and fields ([`work`]). From these come the ids in every log line ([`LogOptions`]), the counts
//! behind `/metrics` ([`Metrics`]) and, where an operator names a collector, OpenTelemetry traces and metrics in the GenAI conventions ([`OtlpOptions`]). The
//! crate also speaks with the service manager ([`Notify`], [`InheritedSockets`]).
//!
//! Nothing leaves the machine unless a collector is configured, and even then no prompt, argument or result does unless [`ContentCapture::On`] is chosen: what
//! is exported is a list of known fields, not whatever a span happens to carry. Where endpoints live and what settings are called is the daemon's business.

mod error;
mod log;
mod metrics;
mod otlp;
mod systemd;
mod telemetry;
pub mod work;

pub use error::TelemetryError;
pub use log::{LogFile, LogOptions};
pub use metrics::{
    AuthFailure, CommandOutcome, Exposition, Metrics, MetricsOptions, ModelOutcome, OpenGuard, RateLimit, Sample,
    Signal, TokenKind, ToolClass, ToolOutcome, Transport, resident_bytes,
};
pub use otlp::{ContentCapture, OtlpOptions};
pub use systemd::{InheritedSockets, Notify, Socket};
pub use telemetry::{Telemetry, TelemetryOptions};
