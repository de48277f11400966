//! Skills built with the compilers that this machine has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod determinism;
mod examples;
mod host;
mod imports;
mod run;
mod support;
mod templates;
