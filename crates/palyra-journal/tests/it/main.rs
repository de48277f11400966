//! Integration tests of the journal, through its public API alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod backup;
mod battery;
mod collect;
mod concurrency;
mod contract;
mod crash;
mod damage;
mod disk;
mod faults;
mod kept;
mod migrations;
mod proofs;
mod restores;
mod rotation;
mod salvage;
mod seals;
mod support;
mod tables;
mod tamper;
