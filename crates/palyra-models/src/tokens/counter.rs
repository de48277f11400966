//! How many tokens a whole request is: messages, calls, reasoning, tools, pictures, and what a provider wraps them in.
//!
//! The number is meant to be a little too large rather than too small. Where the vocabulary is published the text is counted exactly and
//! only the wrapping is an upper guess; elsewhere the larger of the scaled count and the rule of thumb is taken.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher, RandomState};
use std::sync::{PoisonError, RwLock};

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::estimate::estimate_tokens;
use super::family::{TextSize, TokenFamily};
use super::parts::{PartTokens, part_tokens};
use super::tokenizer::Tokenizer;
use crate::message::{Message, ToolSpec};
use crate::request::{ModelRequest, OutputShape};

/// What the wrapping of one message costs: role, separators, and for tool results the id.
const PER_MESSAGE: u64 = 8;
/// What the wrapping of one tool or one call costs.
const PER_TOOL: u64 = 16;
/// What the answer's beginning costs.
const PER_REQUEST: u64 = 16;
/// Instructions that Anthropic adds whenever there are tools; its documentation names at most 804 tokens.
const ANTHROPIC_TOOLS: u64 = 810;
/// Texts at least this long are remembered; shorter ones are counted as fast as they are looked up.
const WORTH_REMEMBERING: usize = 128;
/// Remembered counts, after which it begins anew. A run does not have so many messages.
const MOST_REMEMBERED: usize = 16_384;

runtime_contract_enum! {
    /// How tokens were counted.
    pub enum CountMethod("token_count_method") {
        /// With the vocabulary of the model.
        Tokenizer = "tokenizer",
        /// With another vocabulary and a factor upwards, or by the rule of thumb where that gives more.
        Scaled = "scaled",
    }
}

/// How many tokens something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// So many.
    pub tokens: u64,
    /// And how they were counted.
    pub method: CountMethod,
}

/// Counts requests for one model. Requests repeat what was said and offer the same tools, so a counter that is kept counts each of them once; it may be
/// used from several threads.
#[derive(Debug)]
pub struct TokenCounter {
    family: TokenFamily,
    model: String,
    hasher: RandomState,
    /// Sizes of texts by their hash. The hash is keyed anew in each process, so nobody can choose texts that collide.
    seen: RwLock<HashMap<u64, TextSize>>,
}

impl TokenCounter {
    /// A counter for the model of this name.
    #[must_use]
    pub fn new(model: &str) -> Self {
        Self {
            family: TokenFamily::of(model),
            model: model.to_owned(),
            hasher: RandomState::new(),
            seen: RwLock::default(),
        }
    }

    /// Which tokenizer is assumed.
    #[must_use]
    pub const fn family(&self) -> TokenFamily {
        self.family
    }

    /// How many tokens this request is at most, as well as can be told beforehand.
    #[must_use]
    pub fn request(&self, request: &ModelRequest) -> TokenCount {
        let mut open = None;
        let messages: u64 = request.messages.iter().map(|message| self.message_with(&mut open, message)).sum();
        let tools: u64 = request.tools.iter().map(|tool| self.tool_with(&mut open, tool)).sum();
        let shape = match &request.output {
            OutputShape::Text => 0,
            OutputShape::Json { name, schema } => {
                PER_TOOL + self.text_with(&mut open, name) + self.json_with(&mut open, schema)
            }
        };
        let around = self.around(request.tools.len());
        self.as_count(messages.saturating_add(tools).saturating_add(shape).saturating_add(around))
    }

    /// What a request costs beside its messages and so many tools: the answer's beginning, and what the vendor adds for tools.
    #[must_use]
    pub fn around(&self, tools: usize) -> u64 {
        PER_REQUEST + if self.family == TokenFamily::Anthropic && tools > 0 { ANTHROPIC_TOOLS } else { 0 }
    }

    /// How many tokens this message is within a request.
    #[must_use]
    pub fn message(&self, message: &Message) -> TokenCount {
        let tokens = self.message_with(&mut None, message);
        self.as_count(tokens)
    }

    /// How many tokens the description of this tool is.
    #[must_use]
    pub fn tool(&self, tool: &ToolSpec) -> TokenCount {
        let tokens = self.tool_with(&mut None, tool);
        self.as_count(tokens)
    }

    /// How many tokens this text is.
    #[must_use]
    pub fn text(&self, text: &str) -> TokenCount {
        let tokens = self.text_with(&mut None, text);
        self.as_count(tokens)
    }

    /// How many tokens the model has read of this request at least, whatever its provider reports.
    ///
    /// Only what every provider sends to the model and charges for is counted: what was said, calls and their results. Descriptions of tools
    /// count half, since providers write schemas shorter than JSON; reasoning, which some drop, pictures and documents not at all.
    #[must_use]
    pub fn least_request(&self, request: &ModelRequest) -> u64 {
        let mut open = None;
        let mut least = |text: &str| self.family.least(self.text_size(&mut open, text));
        let mut messages = 0_u64;
        for message in request.messages.iter() {
            messages = messages.saturating_add(least(&message.content));
            for call in &message.tool_calls {
                messages = messages.saturating_add(least(&call.name)).saturating_add(least(&call.arguments));
            }
        }
        let tools = request.tools.iter().map(|tool| {
            let schema = self.family.least(self.json_size(&mut open, &tool.input_schema));
            schema.saturating_add(self.family.least(self.text_size(&mut open, &tool.description)))
        });
        messages.saturating_add(tools.fold(0, u64::saturating_add) / 2)
    }

    /// How many tokens this text is at least, whatever a provider reports.
    #[must_use]
    pub fn least_text(&self, text: &str) -> u64 {
        self.family.least(self.text_size(&mut None, text))
    }

    fn as_count(&self, tokens: u64) -> TokenCount {
        let (_, factor) = self.family.counted_by();
        let method = if factor == 1_000 { CountMethod::Tokenizer } else { CountMethod::Scaled };
        TokenCount { tokens, method }
    }

    fn message_with(&self, open: &mut Option<Tokenizer>, message: &Message) -> u64 {
        let mut tokens = PER_MESSAGE + self.text_with(open, &message.content);
        for call in &message.tool_calls {
            tokens += PER_TOOL + self.text_with(open, &call.name) + self.text_with(open, &call.arguments);
        }
        for block in &message.reasoning {
            // A block goes back as its payload where it has one; nobody is charged for both.
            let payload = if block.payload.is_null() { 0 } else { self.text_with(open, &block.payload.to_string()) };
            tokens += PER_MESSAGE + payload.max(self.text_with(open, &block.text));
        }
        for part in &message.parts {
            tokens += PER_MESSAGE;
            tokens += match part_tokens(self.family, &self.model, part) {
                PartTokens::AtMost(tokens) => tokens,
                PartTokens::Text(text) => self.text_with(open, &text),
            };
        }
        let name = message.name.as_deref().map_or(0, |name| self.text_with(open, name));
        let id = message.tool_call_id.as_deref().map_or(0, |id| self.text_with(open, id));
        tokens + name + id
    }

    fn tool_with(&self, open: &mut Option<Tokenizer>, tool: &ToolSpec) -> u64 {
        PER_TOOL
            + self.text_with(open, &tool.name)
            + self.text_with(open, &tool.description)
            + self.json_with(open, &tool.input_schema)
    }

    /// Counts a text upwards.
    fn text_with(&self, open: &mut Option<Tokenizer>, text: &str) -> u64 {
        self.family.most(self.text_size(open, text))
    }

    /// Counts a document upwards, as the text it is sent as.
    fn json_with(&self, open: &mut Option<Tokenizer>, document: &Value) -> u64 {
        self.family.most(self.json_size(open, document))
    }

    /// Measures a text. The tokenizer is opened by the first text that needs it and serves all others of the same request.
    fn text_size(&self, open: &mut Option<Tokenizer>, text: &str) -> TextSize {
        if text.is_empty() {
            return TextSize::default();
        }
        if text.len() < WORTH_REMEMBERING {
            return self.measure(open, text);
        }
        self.remembered(self.hasher.hash_one(text), || self.measure(open, text))
    }

    /// Measures a document as the text it is sent as. It is written down only if it was not seen before.
    fn json_size(&self, open: &mut Option<Tokenizer>, document: &Value) -> TextSize {
        let mut hasher = self.hasher.build_hasher();
        hash_json(document, &mut hasher);
        self.remembered(hasher.finish(), || self.measure(open, &document.to_string()))
    }

    /// The size that is known for a key, or a new one. Counting holds no lock.
    fn remembered(&self, key: u64, measure: impl FnOnce() -> TextSize) -> TextSize {
        if let Some(size) = self.seen.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return *size;
        }
        let size = measure();
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_REMEMBERED {
            seen.clear();
        }
        seen.insert(key, size);
        size
    }

    fn measure(&self, open: &mut Option<Tokenizer>, text: &str) -> TextSize {
        let (encoding, _) = self.family.counted_by();
        let vocabulary = open.get_or_insert_with(|| encoding.tokenizer()).count(text);
        TextSize { vocabulary, estimate: u64::from(estimate_tokens(text)) }
    }
}

/// Hashes a document without writing it down. A kind comes before each value, so that no two documents are taken for each other.
fn hash_json(document: &Value, hasher: &mut impl Hasher) {
    match document {
        Value::Null => hasher.write_u8(0),
        Value::Bool(truth) => (1_u8, truth).hash(hasher),
        Value::Number(number) => (2_u8, number).hash(hasher),
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(items) => {
            (4_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| hash_json(item, hasher));
        }
        Value::Object(members) => {
            (5_u8, members.len()).hash(hasher);
            for (name, member) in members {
                name.hash(hasher);
                hash_json(member, hasher);
            }
        }
    }
}

#[cfg(test)]
#[path = "counter_tests.rs"]
mod tests;
