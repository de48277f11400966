//! Safety scans on generated corpora: recall, false alarms, streams, frames, vault values, injection signals.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod corpus;
mod detection;
mod framing;
mod held_out;
mod injection;
mod normalising;
mod streaming;
mod vault;
