//! Real servers, playing well and badly.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod http;
mod place;
mod registry;
mod stdio;
