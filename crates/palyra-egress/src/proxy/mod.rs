//! The forward proxy: the only way out of a sandbox.
//!
//! `service` accepts and owns connections, `door` finds out which of the three protocols a connection speaks, `requests`, `tunnel` and `socks` serve
//! them. `guard` refuses requests that could be read in two ways before hyper sees them, `hello` reads the name out of a TLS greeting, `relay` moves
//! bytes that are passed on unseen.
//!
//! What holds for all of them: a name is resolved once and connected to by address; nothing goes to a host before the rule for it was found; the
//! proxy follows no redirect, so the client's next request is checked like its first; one record per request or tunnel.

mod answer;
mod door;
mod guard;
mod hello;
mod relay;
mod requests;
mod rewind;
mod service;
mod socks;
mod tunnel;

pub use hello::{ClientHello, HelloOutcome, read_client_hello};
pub use service::{ProxyAccess, ProxyHandle, ProxyOptions, bind, listener_from_fd};
pub use socks::{SocksGreeting, SocksOutcome, SocksRequest, read_socks_greeting, read_socks_request};
