//! The typed client of the daemon, and the wire types that the daemon itself answers with.
//!
//! [`api`] holds types and addresses; [`command`] is the catalogue of everything that can be asked for; [`Client`] has one method per route; [`TapeStream`] follows a run over broken
//! connections without a gap or a repetition. Built on `hyper` alone: one connection per request over a local socket needs
//! no pool, and the small dependency keeps the command line quick to start. [`Endpoint::remote`] speaks TLS to a daemon on another machine. [`quic`] is for everybody who is not on this machine, or wants
//! to change networks in the middle of a run.

pub mod api;
pub mod command;
pub mod openapi;
pub mod quic;

mod any;
mod client;
mod cursor;
mod endpoint;
mod error;
mod http_tape;
mod ndjson;
mod remote;
mod tape;
mod transport;

pub use client::Client;
pub use cursor::{Follow, Reconnect};
pub use endpoint::{Endpoint, LoopbackToken, SOCKET_NAME, SocketPath, TOKEN_NAME};
pub use error::ClientError;
pub use http_tape::{HttpTape, TapeStream};
pub use ndjson::NdjsonStream;
pub use remote::{Remote, Trust};
pub use tape::{Heard, Tape, TapeSource};
