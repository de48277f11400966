//! The HTTP API: `palyra_client::api` served by the engine.
//!
//! One file per resource; each handler parses, asks the engine or the journal, and answers with a wire type. `extract` reads
//! requests, `error` is the only place where an error becomes a status, `ndjson` is how streams are written.

mod approvals;
mod config;
mod daemon;
mod error;
mod extract;
mod health;
mod journal;
mod ndjson;
mod router;
mod run_control;
mod runs;
mod sessions;
mod tape;

pub(crate) use router::router;
