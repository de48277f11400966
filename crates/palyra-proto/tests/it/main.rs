//! Tests of the compiled schema and of what its messages mean.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod hostile;
mod round_trip;
mod schema;
mod strategies;
