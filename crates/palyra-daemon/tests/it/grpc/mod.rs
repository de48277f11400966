//! gRPC on the real daemon, with the generated Rust client.

mod calls;
mod canvases;
mod errors;
mod streams;
pub(crate) mod support;
mod tls;
