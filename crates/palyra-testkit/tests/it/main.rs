//! Rules that hold over the whole workspace, and tests of the real programs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod bad_input;
mod clients;
mod crash;
mod direction;
mod error_pages;
mod faults;
mod kills;
mod oracles;
mod pages;
mod system;
mod tamper;
mod wording;
