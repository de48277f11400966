//! The OpenAI-compatible provider against the scripted model server, over real sockets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests stop at the first surprise")]

mod answers;
mod faults;
mod llama;
mod server;
mod support;
