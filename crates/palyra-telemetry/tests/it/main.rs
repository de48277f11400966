//! Telemetry against the real other side: a collector that speaks OTLP, a disk that is full, a service manager's sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests stop at the first surprise"
)]

mod collector;
mod export;
mod logging;
mod notify;
mod sockets;
