//! The Rust crate that plugins of Palyra are written with.
//!
//! A plugin of tools is a function per tool and one line that names them:
//!
//! ```ignore
//! use palyra_plugins_sdk::{Failure, tool_plugin};
//!
//! mod tools; // written by `palyra skills build` from skill.toml
//!
//! tool_plugin! {
//!     tools::TOOLS;
//!     "greet" => greet,
//! }
//!
//! #[derive(serde::Deserialize)]
//! struct Person {
//!     name: String,
//! }
//!
//! fn greet(person: Person) -> Result<String, Failure> {
//!     Ok(format!("Hello, {}!", person.name))
//! }
//! ```
//!
//! What the host offers is a module each, and only the modules that a plugin calls become imports of its component: the linker drops the rest, and an
//! audit sees what is left. Nothing here grants anything. A power is a grant that the operator gave; it is found by its name or its address and used
//! through the types of this crate. Without the grant, the same code gets [`HostFailure::NoGrant`].
//!
//! The crate is built for `wasm32-unknown-unknown`. It compiles elsewhere too, so that editors and checks work; calling the host there panics.

#[doc(hidden)]
pub mod bindings;

pub mod channel;
pub mod clock;
pub mod config;
mod failure;
mod hooks;
pub mod http;
pub mod log;
pub mod progress;
pub mod random;
pub mod secret;
pub mod storage;
mod tools;

pub use failure::HostFailure;
pub use hooks::{Decision, Event, Hooks, Verdict};
pub use tools::{Failure, Tool, Tools, answer};

/// What [`tool_plugin!`] reads inputs and writes outputs with, for plugins that handle JSON themselves.
pub use serde_json;
