//! Providers against the scripted model server, the real llama.cpp server and aimock, over real sockets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests stop at the first surprise")]

mod aimock;
mod answers;
mod faults;
mod fixtures;
mod llama;
mod matrix;
mod openai;
mod probing;
mod routing;
mod schemas;
mod server;
mod support;
mod vendors;
mod wire_faults;
mod wires;
