//! How many tokens something is, before any provider has counted it.
//!
//! Two answers for two needs. The `estimate_*` functions are a rule of thumb: cheap, and part of recorded behaviour, so the run
//! machine budgets its context with them. [`TokenCounter`] is for money: it counts with the vocabulary that the model really uses
//! where that is published, and otherwise errs upwards, because a spending limit rests on it.
//!
//! The vocabularies lie packed in the program and are searched in place: nothing is loaded at start, and counting takes memory for
//! the pages it touches and no more. Published libraries were measured first: to count the first word they need 24 to 67 MB and 0.2
//! to 0.5 s, which is more than all the rest of an idle daemon.

mod classes;
mod counter;
mod estimate;
mod family;
mod image_size;
mod merge;
mod parts;
mod pieces;
mod tokenizer;
mod vocabulary;

pub use counter::{CountMethod, TokenCount, TokenCounter};
pub use estimate::{TokenEstimate, estimate_message_tokens, estimate_tokens, estimate_tool_tokens};
pub use family::TokenFamily;
pub use tokenizer::Encoding;
