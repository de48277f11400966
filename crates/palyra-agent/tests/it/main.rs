//! The engine on a real journal, with scripted models and real or hand-made tools.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod agents;
mod approvals;
mod auxiliary;
mod bookings;
mod brain;
mod budgets;
mod calls_without_run;
mod cancel;
mod canvases;
mod client_tools;
mod clock;
mod clones;
mod confirmed_mandates;
mod context;
mod durability;
mod file_labels;
mod flow;
mod forks;
mod hook_events;
mod hooks;
mod hooks_durability;
mod hooks_support;
mod images;
mod input_queue;
mod input_queue_durability;
mod isolation;
mod labels_survive;
mod lifecycle;
mod non_interference;
mod objectives;
mod offering;
mod older_tapes;
mod outside_messages;
mod pages;
mod progress;
mod recall;
mod restored;
mod resume_model;
mod session_story;
mod sessions;
mod summaries;
mod support;
