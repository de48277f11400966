//! The durable engine of Palyra.
//!
//! - [`machine`]: the pure run machine. State and input in, state and actions out.
//! - [`Engine`]: all runs of a daemon; each has a driver that journals first and acts afterwards.
//! - [`tape`]: a run's records, one to one with the events that surfaces follow.
//! - [`replay`](mod@replay): feeding a tape again, for recovery and for proof.
//! - [`Decide`]: the one port every effect passes.
//! - [`context`]: what the model gets to see.

pub mod context;
pub mod machine;
pub mod replay;
pub mod tape;

mod canonical;
mod decide;
mod engine;
mod error;
mod projections;
mod prompt;
mod spec;

pub use canonical::canonical_json;
pub use decide::{Decide, Proposal, Verdict, WorkspaceDecider};
pub use engine::{Engine, EngineOptions, NewRun, RunDetails, TapeFollower, Timings, UndoneRun};
pub use error::AgentError;
pub use projections::{ApprovalFilter, ApprovalRow, RunFilter, RunRow, SessionRow, projections};
pub use spec::{ContextItem, Exchange, Idempotency, MACHINE_VERSION, ModelChoice, RunLimits, RunSpec};
