//! The vocabulary between Palyra and its plugins: the WIT packages as texts, and what each interface stands for.
//!
//! The files under `wit/` are the one description. The runtime links them, guest kits are generated from them, and an audit reads a component's imports
//! against [`HostInterface`]. This crate runs nothing.

mod flat;
mod interfaces;

pub use flat::flat_wit;
pub use interfaces::{ForeignImport, HostInterface, WASI_HTTP_IMPORTS, classify_import};

/// The package `palyra:host`.
pub const HOST_WIT: &str = include_str!("../wit/deps/host.wit");

/// The package `palyra:plugin`.
pub const PLUGIN_WIT: &str = include_str!("../wit/deps/plugin.wit");

/// The package `palyra:sdk`: worlds that import everything.
pub const SDK_WORLDS_WIT: &str = include_str!("../wit/sdk.wit");

/// All packages in one file, as a guest compiler takes it. The same as [`flat_wit`] makes.
pub const SDK_WIT: &str = include_str!("../sdk/wit/palyra-sdk.wit");

/// The version of all packages.
pub const ABI_VERSION: &str = "1.0.0";

/// The interface that a plugin of tools exports.
pub const TOOL_EXPORT: &str = "palyra:plugin/tool@1.0.0";

/// The interface that a plugin of hooks exports.
pub const HOOK_EXPORT: &str = "palyra:plugin/hook@1.0.0";
