//! The numbers of this daemon: what is counted, and by which labels.
//!
//! Counting is one atomic addition and never fails. The set of series is fixed when the registry is made, whatever clients send. Writing the numbers down for
//! Prometheus is `exposition.rs`; sending them to a collector is `otlp/`.

mod cells;
mod commands;
mod exposition;
mod family;
mod labels;
mod process;
mod registry;
mod snapshot;

pub use exposition::Exposition;
pub use labels::{
    AuthFailure, CommandOutcome, ModelOutcome, RateLimit, Signal, TokenKind, ToolClass, ToolOutcome, Transport,
};
pub use process::resident_bytes;
pub use registry::{Metrics, MetricsOptions, OpenGuard, Sample};

pub(crate) use family::{Labels, Value};
pub(crate) use registry::{Mirror, ModelCall};
pub(crate) use snapshot::{FamilySnapshot, Kind};
