//! Sandboxes on the real kernel: hostile guests, useful work, limits and bad input.
//!
//! Everything runs with the rights of whoever runs the tests; run as root, the batteries also run a second time as an ordinary user, in a copy of
//! this very program that gave its rights up.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod again;
mod battery;
mod guests;
mod input;
mod life;
mod limits;
mod network;
mod owner;
mod smoke;
mod sockets;
mod terminal;
mod uncounted;
mod work;
mod world;
