//! What a server says about the models it offers.

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

runtime_contract_enum! {
    /// What a model can do besides text.
    pub enum Capability("model_capability") {
        /// It calls tools.
        Tools = "tools" | "tool_use",
        /// It sees images.
        Images = "images" | "vision",
        /// It reads files such as PDFs.
        Files = "files",
        /// It thinks before it answers.
        Reasoning = "reasoning" | "thinking",
        /// It keeps to a JSON Schema.
        StructuredOutput = "structured_output" | "structured_outputs",
        /// It makes vectors of texts.
        Embeddings = "embeddings" | "embedding",
    }
}

/// One model that a server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelEntry {
    /// The name to ask for it by.
    pub id: String,
    /// A name for people, where the server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many tokens fit into one call, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// How long an answer may be, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// What it can do; none if the server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Capability>>,
    /// Price of a million tokens of requests in micro-USD, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<u64>,
    /// Price of a million tokens of answers in micro-USD, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<u64>,
}

impl ModelEntry {
    /// A model of which only the name is known.
    #[must_use]
    pub fn named(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }
}
