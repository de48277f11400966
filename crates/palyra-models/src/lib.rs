//! Models behind one streaming trait.
//!
//! A [`ModelProvider`] takes a [`ModelRequest`] that is complete in itself and answers with a stream of [`ModelEvent`]s;
//! [`TurnAssembler`] makes a turn of them. Providers:
//! - [`OpenAiCompatible`]: any server that speaks streaming chat completions;
//! - [`OfflineProvider`]: a deterministic planner for plain requests. It is not a language model and says so;
//! - [`ScriptedProvider`]: fixed turns for tests and measurements.
//!
//! [`PriceTable`] says what calls cost and may cost at worst, [`TokenCounter`] how many tokens a request is before it is made.
//!
//! [`select`] chooses among them by configuration and says why. [`testing`] holds a scripted model server for tests of any
//! crate. Nothing here decides whether a call may be made, keeps a conversation, or touches the workspace.

mod assembler;
mod attempt;
mod embedding;
mod error;
mod event;
mod message;
mod offline;
mod openai_compatible;
mod part;
mod price;
mod provider;
mod reasoning;
mod request;
mod scripted;
mod select;
pub mod testing;
mod tokens;

pub use assembler::{AssembledTurn, TurnAssembler};
pub use attempt::{Answering, Attempt};
pub use embedding::{EmbeddingInput, EmbeddingRequest, Embeddings};
pub use error::{ModelError, ModelErrorClass};
pub use event::{ModelEvent, StopReason, Usage};
pub use message::{ATTACHMENT_MARK, Message, Role, ToolCallRequest, ToolSpec};
pub use offline::OfflineProvider;
pub use openai_compatible::{OpenAiCompatible, OpenAiCompatibleOptions, RetryPolicy, install_crypto_provider};
pub use part::{Part, PartKind};
pub use price::{AttemptCost, Billing, Cost, PriceFileError, PriceTable, Priced, Quote, Rates, Seller};
pub use provider::{ModelProvider, ModelStream, ProviderInfo};
pub use reasoning::ReasoningBlock;
pub use request::{ModelRequest, OutputShape, Purpose, ReasoningEffort, ToolChoice};
pub use scripted::{Call, Echo, ModelErrorSpec, Scene, Script, ScriptedProvider, Turn};
pub use select::{Selection, select};
pub use tokens::{
    CountMethod, Encoding, TokenCount, TokenCounter, TokenFamily, estimate_message_tokens, estimate_tokens,
    estimate_tool_tokens,
};
