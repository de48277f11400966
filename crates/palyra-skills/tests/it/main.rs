//! Skills as they arrive from outside: whole archives, hostile ones, registries under attack, folders of instructions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod agent_skills;
mod archives;
mod audits;
mod hostile_archives;
mod mutations;
mod raw_zip;
mod registries;
mod signatures;
mod skill;
mod stores;
