//! The real `palyra` program: exit codes, standard output, standard error, against a daemon played by the test or none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod approvals;
mod configuration;
mod exit_codes;
mod following;
mod journal;
mod launching;
mod mcp;
mod models;
mod policy;
mod support;
mod surface;
mod terminal;
