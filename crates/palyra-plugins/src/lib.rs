//! The vocabulary between Palyra and its plugins: the WIT packages as texts, and what each interface stands for.
//!
//! The files under `wit/` are the one description. The runtime links them, guest kits are generated from them, and an audit reads a component's imports
//! against [`HostInterface`]. This crate runs nothing.

mod interfaces;

pub use interfaces::{ForeignImport, HostInterface, WASI_HTTP_IMPORTS, classify_import};

/// The package `palyra:host`.
pub const HOST_WIT: &str = include_str!("../wit/host.wit");

/// The package `palyra:plugin`.
pub const PLUGIN_WIT: &str = include_str!("../wit/plugin.wit");

/// The version of both packages.
pub const ABI_VERSION: &str = "1.0.0";
