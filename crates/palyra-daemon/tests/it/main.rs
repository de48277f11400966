//! The real daemon binary, driven from outside: its doors, what it refuses, runs, the journal, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod agents;
mod approval_pages;
mod asked;
mod attachments;
mod auxiliary;
mod bindings;
mod bounds;
mod broken;
mod browser;
mod canvas;
mod canvas_browser;
mod clients;
#[path = "../../../palyra-telemetry/tests/it/collector.rs"]
#[allow(dead_code, reason = "shared with the tests of palyra-telemetry, which use all of it")]
mod collector;
mod console;
mod credentials;
mod description;
mod doors;
mod events;
mod grpc;
mod hang_up;
mod hostile;
mod hostile_grpc;
mod hostile_quic;
mod hostile_slow;
mod hostile_socket;
mod hostile_strangers;
mod idle;
mod journal;
mod matrix;
mod mcp;
mod memory;
mod messages;
mod models;
mod mutual_tls;
mod observe;
mod openai;
mod outages;
mod policies;
mod prompt;
mod proxy;
mod quic;
mod quic_refusals;
mod quic_support;
mod raw;
mod requests;
mod runs;
mod service;
mod spending;
mod standing;
mod start;
mod stop;
mod stopped;
mod storage;
mod support;
mod things;
mod tls;
mod workspaces;
