//! What must hold whatever bytes a decoder is given, one function for each decoder that strangers can reach.
//!
//! An oracle takes any bytes and panics where a promise is broken: what was read reads again as the same once it is written; what arrives in portions reads as what arrives at once;
//! what is let in is what a much simpler look at it would let in; what is refused is refused by one of the codes that are documented for it, and the refusal does not grow beyond what was
//! sent. The fuzz targets in `fuzz/` are these functions and nothing else, and the tests of this crate run them over the same seeds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "an oracle speaks by panicking, as a test does"
)]

mod acp;
mod form;
mod frames;
mod openai;
mod pages;
mod proto;
mod skills;
mod web;

use palyra_common::StableErrorEnvelope;

pub use acp::{acp_json, query, socket_message};
pub use form::multipart;
pub use frames::{model_sse, quic_frame};
pub use openai::{openai_chat, openai_embeddings, openai_responses};
pub use pages::a2ui;
pub use proto::{grpc_request, proto_acp, proto_run_stream};
pub use skills::{skill_archive, skill_manifest, skill_statement};
pub use web::{grpc_timeout, host_header, origin, resume_token};

/// An oracle and the name of its fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Also the name of its directory of seeds.
    pub name: &'static str,
    /// The check.
    pub check: fn(&[u8]),
}

/// A line for each of them.
macro_rules! targets {
    ($($name:ident),+ $(,)?) => {
        /// All oracles.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), check: $name }),+];
    };
}

targets!(
    a2ui,
    acp_json,
    grpc_request,
    grpc_timeout,
    host_header,
    model_sse,
    multipart,
    openai_chat,
    openai_embeddings,
    openai_responses,
    origin,
    proto_acp,
    proto_run_stream,
    query,
    quic_frame,
    resume_token,
    skill_archive,
    skill_manifest,
    skill_statement,
    socket_message,
);

/// A refusal has one of the codes that are documented for this, says something, and says no more than a few times what was sent.
fn refused(error: &StableErrorEnvelope, codes: &[&str], sent: usize) {
    assert!(codes.contains(&error.code.as_str()), "{error:?}");
    assert!(!error.message.is_empty() && error.recovery_hint.is_some(), "{error:?}");
    assert!(!error.validation_errors.is_empty(), "{error:?}");
    let said = serde_json::to_string(error).unwrap().len();
    // Each byte may be escaped, and shows up in the message and in the field.
    assert!(said <= 16 * sent + 4096, "{sent} bytes were refused with {said}");
}
