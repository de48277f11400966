//! Outside tools: servers of the Model Context Protocol.
//!
//! A server is somebody else's program. What it says about itself (names, descriptions, schemas, hints) is untrusted data: it is
//! pinned by digest when the operator adds the server, and a tool that differs from its pin is not offered until the operator has
//! agreed again. How results and arguments are labelled comes from a classification file that a person has reviewed; until then
//! [`palyra_common::ToolClassification::cautious`] holds. A server that is dead, slow, babbling or endless fails the one call, in time,
//! and never hangs a run.
//!
//! The protocol itself is spoken by the official SDK `rmcp`, so that revisions are somebody's full-time work; the two transports
//! are ours where the SDK's own do not bound what they read. This crate knows neither the engine's tool trait nor policy: the daemon
//! adapts [`McpServer`] to the one and hands classifications to the other.
//!
//! Files, all in one directory and all private to the user:
//! `servers.toml` (what to connect to), `NAME.pins.json` (what was agreed), `NAME.classification.toml` (how it is labelled).

mod classification_file;
mod config;
mod conforms;
mod connection;
mod description;
mod error;
mod files;
mod handler;
mod http;
mod lines;
mod name;
mod options;
mod outcome;
mod pins;
mod process;
mod propose;
mod registry;
mod server;
mod stdio;
mod tail;
mod tool_set;

pub use classification_file::{ClassificationFile, ReviewState, ToolEntry};
pub use config::{HttpConfig, McpConfig, ServerConfig, StdioConfig, TransportConfig};
pub use description::{ToolDescription, ToolHints};
pub use error::{McpError, Sent};
pub use name::ServerName;
pub use options::McpOptions;
pub use outcome::McpOutcome;
pub use pins::{PinState, Pins};
pub use propose::{Proposal, propose};
pub use registry::{McpRegistry, Reload};
pub use server::{McpCall, McpProgress, McpServer, ProgressSink, ServerStatus};
pub use tool_set::{ClassificationSource, OfferedTool, ToolSet, Withheld, WithheldTool};
