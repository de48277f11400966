//! The daemon of Palyra: it puts the parts together and opens the doors. Nothing else lives here.
//!
//! - [`Composition`]: which tools, decider and provider this daemon has; [`Composition::main`] is the whole of `palyrad`;
//! - `bootstrap`: from parts to the `App` that handlers see;
//! - `options`, `models`, `spending`: from configuration to resolved parts, the latter two while the daemon runs as well; `telemetry`: its log, numbers and traces;
//! - `state`, `token`: the state root, who owns it, what lies in it;
//! - `listen`, `serve`, `auth`: the Unix socket, loopback HTTP and gRPC, and who may come in;
//! - `dispatch`: the one dispatcher of all commands: who may give them, what becomes of a repetition, what they do;
//! - `grpc`: gRPC around it, the schema of `palyra-proto`;
//! - `http`: HTTP around it, one place for addresses and one for errors;
//! - `quic`: QUIC around it; `tls`: certificates, the daemon's own and those of callers;
//! - `openai`: the same runs for clients that speak OpenAI's interface; `mcp`: for agents that speak the Model Context Protocol;
//! - `views`: rows of the engine as wire types; `shutdown`: how it ends.

mod app;
mod args;
mod auth;
mod bootstrap;
mod budgets;
mod collect;
mod composition;
mod credentials;
mod dispatch;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
mod heap;
mod http;
mod keys;
mod listen;
mod mcp;
mod models;
mod openai;
mod options;
mod outside;
mod policy_watch;
mod quic;
mod reach;
mod reserve;
mod rules;
mod serve;
mod shutdown;
mod skills;
mod spending;
mod stamp;
mod startup_memory;
mod state;
mod telemetry;
mod tls;
mod token;
mod views;
mod workspaces;

pub use composition::Composition;
pub use error::DaemonError;
pub use palyra_sandbox::main_if_asked as become_launcher_if_asked;
