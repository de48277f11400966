//! The real daemon binary, driven from outside: its doors, what it refuses, runs, the journal, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod clients;
mod description;
mod doors;
mod grpc;
mod journal;
mod matrix;
mod policies;
mod raw;
mod requests;
mod runs;
mod start;
mod stop;
mod support;
