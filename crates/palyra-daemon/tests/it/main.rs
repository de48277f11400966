//! The real daemon binary, driven from outside: its doors, what it refuses, runs, the journal, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod doors;
mod journal;
mod policies;
mod quic;
mod quic_refusals;
mod quic_support;
mod raw;
mod requests;
mod runs;
mod start;
mod stop;
mod support;
mod tls;
