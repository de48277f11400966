//! Runs WebAssembly plugins: limits, grants, host interfaces, compiled code kept on disk.
//!
//! A plugin is a component of the worlds in `crates/palyra-plugins/wit`, or a core module with a `run` export. [`PluginRuntime::prepare`] checks, compiles and links
//! it once; each call then gets a fresh instance with its own limits and grants and ends in a value or in a distinct [`PluginError`], with what it used. What a
//! guest may reach lies behind [`HostServices`]; this crate knows neither skills nor the journal, opens no connection and stores nothing but compiled code.

mod bindings;
mod cache;
mod call;
mod classify;
mod compile;
mod core_module;
mod engine;
mod error;
mod grants;
mod host;
mod limits;
mod linkers;
mod meter;
mod plugin;
mod randomness;
mod revocation;
mod run;
mod runtime;
mod scan;
mod services;
mod shared;
mod state;
mod text;
mod ticker;
mod usage;
mod wasi_http;

pub use cache::{CacheKey, CacheOptions, CacheStats};
pub use call::{CallOptions, ExecutionMode, HookAnswer, HookCall, ToolCall, ToolDescription, allows};
pub use engine::{Allocation, PoolSizes};
pub use error::{Failed, Finished, PluginError};
pub use grants::{CapabilityGrantSet, ChannelGrant, HttpGrant, SecretGrant, SecretUse, StorageGrant};
pub use limits::{HostCallLimits, RuntimeLimits};
pub use plugin::Plugin;
pub use revocation::Revocation;
pub use runtime::{PluginRuntime, RuntimeOptions};
pub use scan::PluginKind;
pub use services::{
    Change, Credential, Expectation, HostFailure, HostServices, HttpRequest, HttpResponse, LogLevel, NoServices,
    Placement, SecretBytes, StorageAnswer, StorageEntry, StorageOutcome, StorageRequest,
};
pub use usage::PluginUsage;
