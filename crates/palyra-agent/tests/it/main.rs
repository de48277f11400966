//! The engine on a real journal, with scripted models and real or hand-made tools.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod approvals;
mod brain;
mod cancel;
mod context;
mod durability;
mod flow;
mod lifecycle;
mod non_interference;
mod progress;
mod support;
