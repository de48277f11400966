//! The OpenAI-compatible interface, as its clients see it: on the wire, and through OpenAI's own package for Python.

mod chat;
mod client_tools;
mod errors;
mod images;
mod official;
mod people;
mod responses;
mod wire;
