//! Embeddings: texts as vectors of numbers. They belong to no run; a provider that has no embedding model says so.

/// What is to be embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbeddingInput {
    /// Texts.
    Texts(Vec<String>),
    /// Texts that were cut into the model's own tokens before.
    Tokens(Vec<Vec<u32>>),
}

impl EmbeddingInput {
    /// How many vectors are expected.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Tokens(tokens) => tokens.len(),
        }
    }

    /// Whether there is nothing to embed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One call of an embedding model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingRequest {
    /// The model, as the provider knows it.
    pub model: String,
    /// What is to be embedded.
    pub input: EmbeddingInput,
    /// How many numbers a vector shall have, if the model leaves a choice.
    pub dimensions: Option<u32>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// The model that answered.
    pub model: String,
    /// One vector for each input, in the order of the inputs.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens read, as the provider counts them.
    pub input_tokens: u64,
}
