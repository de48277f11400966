//! The protobuf schema of Palyra, compiled once for the whole workspace, and its meaning in the shared vocabulary.
//!
//! `schemas/proto` is the description; the modules here are generated from it, one per package, with clients and servers.
//! Conversions say what a message means in terms of `palyra-common`: writing cannot fail, reading checks everything and
//! fails with a [`ProtoError`] that names the field. The crate opens no connection and knows no command.
//!
//! **JSON inside messages is text**, in fields named `…_json`. A `google.protobuf.Struct` knows numbers as doubles only, so
//! a large integer would arrive as another one, and arguments of tools are digested and bound to approvals.
//!
//! **Enums** carry the names and numbers of the contracts in `palyra-common`. Zero means that nothing was said; a number
//! that is not known is an error and never a default, since a decision or a label must not be guessed.
//!
//! **Errors** travel as a gRPC status whose details hold the same envelope that every other transport shows; see
//! [`status_from_error`] and [`error_from_status`].

mod acp;
mod envelope;
mod error;
mod generated;
mod label;
mod masked;
mod rich_status;
mod run_stream;
mod run_stream_tools;
mod value;

pub use error::ProtoError;
pub use generated::palyra::{auth, browser, common, cron, gateway, memory, node, routines};
pub use rich_status::{ERROR_DOMAIN, code_for, error_from_status, status_from_error};
pub use value::{contract_from_wire, contract_to_wire, json_from_wire, timestamp_from_wire, timestamp_to_wire};

/// The whole schema with its comments, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/palyra_descriptors.bin"));

/// The descriptors of the standard error details that a status carries beside ours, for reflection.
pub const STATUS_DESCRIPTOR_SET: &[u8] = tonic_types::pb::FILE_DESCRIPTOR_SET;

/// No message is larger than this, in either direction. Larger contents are artifacts; a limit on what a peer may make us
/// hold in memory before we know what it is.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
