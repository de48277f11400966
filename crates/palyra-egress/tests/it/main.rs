//! Tests of the way out against real servers, a real name server and, where public addresses are needed, a network namespace of the test's own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests stop at the first surprise"
)]

mod access;
mod client;
mod errors;
mod harness;
mod limits;
mod programs;
mod secrets;
mod tricks;
mod tunnels;
