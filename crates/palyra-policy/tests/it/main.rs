//! The crate as others see it: shipped policies, faulty input, decisions, the store and the tools around them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod commands;
mod decisions;
mod faults;
mod mutation;
mod patterns;
mod properties;
mod refusals;
mod requests;
mod shipped;
mod store;
mod support;
mod workbench;
