//! The ledger from outside: limits under concurrency, periods, seeding, and a model of it to compare with.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod against_model;
mod behaviour;
mod race;
mod support;
