//! The built-in tools as the engine calls them: through the registry, on real directories.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod cancelling;
mod confinement;
mod listing;
mod patching;
mod reading;
mod reference;
mod searching;
mod support;
mod undoing;
mod writing;
