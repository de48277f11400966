//! Configuration: `palyra.toml`, its schema, its layers and its reference page.
//!
//! `schema` declares every key once. From that one place come the typed [`Config`], the flat registry [`KEYS`] behind
//! `palyra config list|get|set|explain`, the environment variables and the generated reference. A value is taken from
//! the first layer that has it: environment, file, deployment profile, default; where it came from is kept.
//!
//! Everything fails closed: an unknown key, a wrong type or an unreadable file refuses the whole configuration.

mod bind;
mod edit;
mod error;
mod file;
mod key;
mod reference;
mod resolve;
mod schema;
mod value;

pub use bind::{BindExposure, BindGuards, Guard, check_bind};
pub use edit::{ConfigEdit, replace_file, set, unset};
pub use error::{ConfigError, ConfigProblem, Origin};
pub use file::{FileLayer, parse};
pub use key::{EnvNames, KEYS, KeySpec, Restart, find_key};
pub use reference::generate_reference;
pub use resolve::{ConfigSource, Explanation, LoadedConfig, load, resolve};
pub use schema::{
    ApprovalConfig, BudgetConfig, Config, ContextConfig, DaemonConfig, DeploymentConfig, HttpConfig, JournalConfig,
    LogConfig, LogFormat, LogLevel, MandateClass, ModelConfig, ModelProviderChoice, PatchConfig, QuicConfig, RunConfig,
    StorageConfig, TelemetryConfig, ToolConfig,
};
pub use value::{ConfigValue, ValueType};

/// The version of the configuration file that this build reads.
pub const CONFIG_VERSION: i64 = 1;
