//! Identities on disk and on the wire: the authority's files, and real TLS handshakes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod authority;
mod handshakes;
mod link_rate;
mod support;
