//! `models.toml`: accounts with providers, their keys, and which models are asked for what. It lies beside `palyra.toml`.
//!
//! ```toml
//! version = 1
//!
//! [providers.anthropic]              # a name of your own
//! kind = "anthropic"                 # openai, anthropic, gemini, openrouter, ollama or openai_compatible
//!
//! [[providers.anthropic.keys]]       # several keys take turns; one that fails rests
//! name = "main"
//! key = "env:ANTHROPIC_API_KEY"      # a reference, never the key itself
//!
//! [providers.local]
//! kind = "openai_compatible"
//! base_url = "http://127.0.0.1:8080/v1"
//! context_tokens = 16384
//! capabilities = ["tools", "structured_output"]
//! timeouts = { first_byte_seconds = 300 }   # also connect_seconds, between_chunks_seconds, total_seconds
//!
//! [providers.local.models."llava"]   # what is special about one model
//! capabilities = ["tools", "structured_output", "images"]
//!
//! [routes]
//! default = ["anthropic/claude-sonnet-4-5", "local/qwen3"]   # asked in this order
//! low_cost = ["local/qwen3"]         # by preference: low_cost, low_latency, vision_capable
//!
//! [routes.tasks]
//! summary = ["local/qwen3"]
//!
//! [routes.agents]
//! reviewer = ["anthropic/claude-sonnet-4-5"]
//! ```
//!
//! A key that nobody knows is refused with the one that was most likely meant; edits keep the comments of whoever wrote the file. The
//! `[model]` section of `palyra.toml` stays the simple way for one provider; `select` says which of the two counts. Nothing here asks
//! a provider anything or reads a secret.

mod config;
mod edit;
mod error;
mod kind;
mod name;
mod read;
mod timeouts;

pub use config::{Account, AccountKey, Accounts, ModelSettings, Routes};
pub use edit::{accept, add_key, add_provider, remove_provider, set_default};
pub use error::AccountsError;
pub use kind::ProviderKind;
pub use name::ModelName;
pub use timeouts::AccountTimeouts;
