//! gRPC: the schema of `palyra-proto` served by the one dispatcher.
//!
//! One file per service; each method reads its message, gives one command and writes what came of it. `read` and `write` know both
//! vocabularies, `admit` lets callers in and keeps their deadlines, `status` is the only place where an error becomes a status,
//! `run_stream` follows a run.
//!
//! Only services that this daemon really has are registered: GatewayService, ApprovalsService, CanvasService, TokensService, and the standard health and
//! reflection services. The vault, memory, providers' profiles and pairing, the browser, schedules, routines and nodes are described in
//! `schemas/proto` and answered by nobody yet; reflection does not list them.

mod admit;
mod agents;
mod approvals;
mod ask;
mod bindings;
mod bounded;
mod canvases;
mod deadline;
mod fuzzing;
mod gateway;
mod health;
mod inbound;
mod read;
mod routes;
mod run_stream;
mod runs;
mod sessions;
mod status;
mod steering;
mod tokens;
mod write;

pub(crate) use deadline::parse as parse_timeout;
pub(crate) use fuzzing::refusals;
pub(crate) use routes::router;
