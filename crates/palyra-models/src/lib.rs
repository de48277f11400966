//! Models behind one streaming trait.
//!
//! A [`ModelProvider`] takes a [`ModelRequest`] that is complete in itself and answers with a stream of [`ModelEvent`]s;
//! [`TurnAssembler`] makes a turn of them. Providers:
//! - [`OpenAi`] (Responses and chat completions), [`OpenRouter`], and [`OpenAiCompatible`] for any server that speaks streaming chat
//!   completions;
//! - [`Anthropic`], [`Gemini`] and [`Ollama`]: the wires of these vendors;
//! - [`OfflineProvider`]: a deterministic planner for plain requests. It is not a language model and says so;
//! - [`ScriptedProvider`]: fixed turns for tests and measurements.
//!
//! [`PriceTable`] says what calls cost and may cost at worst, [`TokenCounter`] how many tokens a request is before it is made.
//!
//! [`select`] chooses among them by configuration and says why. What is reached over a network stands behind a [`Router`], which
//! tries again, changes keys and goes on to the next model of a list; [`Accounts`] is what `models.toml` says about keys and lists, and
//! [`Offer`]s are what could be used and is not; [`LiveProvider`] lets one selection take the place of another while calls are under way. [`testing`] holds a scripted model server for tests of any
//! crate. Nothing here decides whether a call may be made, keeps a conversation, or touches the workspace.

mod accounts;
mod anthropic;
#[cfg(test)]
mod any_json;
mod assembler;
mod attachment;
mod attempt;
mod chat;
mod default_tools;
mod detect;
mod dialogue;
mod embedding;
mod error;
mod event;
#[doc(hidden)]
pub mod fuzzing;
mod gemini;
mod live;
mod message;
mod model_entry;
mod offline;
mod ollama;
mod openai;
mod openai_compatible;
mod openrouter;
mod part;
mod price;
mod provider;
mod reasoning;
mod request;
mod route;
mod schema;
mod scripted;
mod select;
pub mod testing;
mod tokens;
mod unknown_model;
mod wire;
mod wires;

pub use accounts::{
    Account, AccountKey, AccountTimeouts, Accounts, AccountsError, ModelName, ModelSettings, ProviderKind, Routes,
    accept, add_key, add_provider, remove_provider, set_default,
};
pub use anthropic::Anthropic;
pub use assembler::{AssembledTurn, TurnAssembler};
pub use attempt::{AnswerEnd, Answering, Attempt};
pub use default_tools::default_tools;
pub use detect::{Offer, adopt, discover, set_variables};
pub use embedding::{EmbeddingInput, EmbeddingRequest, Embeddings};
pub use error::{Delivery, ModelError, ModelErrorClass};
pub use event::{ModelEvent, StopReason, Usage};
pub use gemini::Gemini;
pub use live::LiveProvider;
pub use message::{ATTACHMENT_MARK, Message, REFUSAL_ADVICE, Role, ToolCallRequest, ToolSpec};
pub use model_entry::{Capability, ModelEntry};
pub use offline::{NAME as OFFLINE, OfflineProvider};
pub use ollama::Ollama;
pub use openai::{OpenAi, OpenAiApi};
pub use openai_compatible::{OpenAiCompatible, OpenAiCompatibleOptions};
pub use openrouter::OpenRouter;
pub use part::{Part, PartKind};
pub use price::{AttemptCost, Billing, Cost, PriceFileError, PriceTable, Priced, Quote, Rates, Seller};
pub use provider::{ModelProvider, ModelStream, ProviderInfo};
pub use reasoning::ReasoningBlock;
pub use request::{ModelRequest, OutputShape, Purpose, ReasoningEffort, ToolChoice};
pub use route::{
    AfterOutput, AnswerMemory, Chain, Explanation, Gate, GateHealth, GateState, HttpProviders, KeyStanding, Listed,
    Listing, Needs, Pace, ProbePrompt, PromptChoice, ProviderFactory, ProviderWrapper, RoutePolicy, Router,
    RouterOptions, Standing, Step, SystemPace, Target, TryOut, Wish, check_listed, listed, try_account, try_out,
    window,
};
pub use schema::{SchemaDialect, SchemaLoss, schema_losses};
pub use scripted::{Call, Echo, ModelErrorSpec, Scene, Script, ScriptedProvider, Turn};
pub use select::{SelectError, SelectOptions, Selection, select};
pub use tokens::{
    CountMethod, Encoding, TokenCount, TokenCounter, TokenEstimate, TokenFamily, estimate_message_tokens,
    estimate_tokens, estimate_tool_tokens,
};
pub use unknown_model::UnknownModel;
pub use wire::{HttpProviderOptions, PlaintextKey, RetryPolicy, Timeouts, install_crypto_provider};
pub use wires::Wire;
