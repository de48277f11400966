//! The client against a daemon that is played by the test, byte by byte, so that every way of misbehaving can be staged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod errors;
mod requests;
mod support;
mod tape;
