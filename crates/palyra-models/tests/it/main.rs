//! Providers against the scripted model server and the real llama.cpp server, over real sockets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests stop at the first surprise")]

mod answers;
mod faults;
mod fixtures;
mod llama;
mod openai;
mod routing;
mod server;
mod support;
mod vendors;
mod wire_faults;
mod wires;
