//! What all providers that are reached over HTTP have in common.
//!
//! A provider brings a base URL, its headers, an encoder of requests and a [`Decode`]r of answers; everything between lies here:
//! - `options`: how to reach a server and how patient to be; `endpoint`: base URLs as people write them;
//! - `transport`: one client for one server, sending and nothing else; `body`: bytes as they arrive, under the clocks of each phase;
//! - `sse` and `lines`: the two ways in which servers cut a stream; `answer`: from bytes to a [`crate::ModelStream`];
//! - `json`: the documents in it; `counts`: token counts within bounds; `failure`: what a refusal means; `retry_after`: how long a server asks to wait; `retry`: when to try again;
//! - `repair`: arguments that are almost JSON; `tool_names`: names both ways; `mask` and `masked_events`: keys never leave; `tls`: the cryptography.
//!
//! INVARIANT: one call of a provider is one request that a server reads. Nothing here tries again after an answer, however bad, or
//! asks anybody else.

mod answer;
mod body;
mod counts;
mod endpoint;
mod failure;
mod json;
mod lines;
mod mask;
mod masked_events;
mod options;
mod repair;
mod retry;
mod retry_after;
mod sse;
mod tls;
mod tool_names;
mod transport;

pub(crate) use self::answer::{Decode, Flow, Framing, start};
pub(crate) use self::counts::{Counts, count};
pub(crate) use self::endpoint::BaseUrl;
pub(crate) use self::failure::{Judge, Refusal, Verdict, from_stream, no_verdict};
pub(crate) use self::json::{no_part_of, parse, without_lone_surrogates};
pub(crate) use self::repair::{Cut, arguments as repair_arguments, is_json};
pub(crate) use self::retry::chance;
pub(crate) use self::sse::sse_events;
pub(crate) use self::tool_names::ToolNames;
pub(crate) use self::transport::{Ask, Auth, Transport, TransportOptions};

pub use self::options::{HttpProviderOptions, PlaintextKey, Timeouts};
pub use self::retry::RetryPolicy;
pub use self::tls::install_crypto_provider;

/// A tool's name as most servers see it.
pub(crate) fn wire_name(name: &str) -> String {
    ToolNames::default().to_wire(name)
}
