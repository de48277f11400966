//! Integration tests of the vocabulary, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod config_edit;
mod config_file;
mod config_layers;
mod config_properties;
mod contracts;
mod envelopes;
mod reference;
