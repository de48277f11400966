//! Plugins in a real runtime: guests written as text, each with one behaviour.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests stop at the first surprise"
)]

mod capabilities;
mod concurrency;
mod core_modules;
mod determinism;
mod disk_cache;
mod harness;
mod hooks;
mod hostile;
mod malformed;
mod suite;
mod wasi_http;
mod wit;
