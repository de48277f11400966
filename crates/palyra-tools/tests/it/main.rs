//! The built-in tools as the engine calls them: through the registry, on real directories.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise and reads best with values at hand"
)]

mod attributes;
mod attribution;
mod cancelling;
mod checkpoints;
mod confinement;
mod editing;
mod file_handles;
mod listing;
mod patching;
mod reading;
mod reference;
mod searching;
mod support;
mod third_party;
mod uncovered;
mod undoing;
mod whole;
mod writing;
