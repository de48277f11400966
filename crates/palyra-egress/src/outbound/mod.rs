//! One request to one host, the same for the proxy and the client: check, pin, connect, fill in secrets, send, and watch what comes back.

mod body;
mod exchange;
mod headers;
mod overrides;

pub(crate) use body::{BoxError, OutBody, egress_error_of, empty, full};
pub(crate) use exchange::{Answer, Outgoing, exchange};
pub(crate) use headers::strip_hop_by_hop;
