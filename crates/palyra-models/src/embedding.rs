//! Embeddings: texts as vectors of numbers. They belong to no run; a provider that has no embedding model says so.

use crate::attempt::Answering;
use crate::error::{ModelError, ModelErrorClass};

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

impl EmbeddingInput {
    /// The texts; an error for a provider whose models take no tokens.
    pub(crate) fn texts(&self) -> Result<&[String], ModelError> {
        match self {
            Self::Texts(texts) => Ok(texts),
            Self::Tokens(_) => {
                Err(ModelError::new(ModelErrorClass::Permanent, "this provider makes vectors of texts, not of tokens"))
            }
        }
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
    /// Tokens read, as the provider counts them; none if it did not say so in a way that can be read.
    pub input_tokens: Option<u64>,
    /// Who was asked, where there was a choice.
    pub asked: Option<Answering>,
}

impl Embeddings {
    /// The vectors if there is a good one for each input, all of the same length.
    pub(crate) fn checked(
        model: &str,
        vectors: Vec<Vec<f32>>,
        inputs: usize,
        input_tokens: Option<u64>,
    ) -> Result<Self, ModelError> {
        let length = vectors.first().map_or(0, Vec::len);
        let good = |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|number| number.is_finite());
        if vectors.len() != inputs || length == 0 || !vectors.iter().all(good) {
            return Err(ModelError::malformed("the server did not send one vector for each input"));
        }
        Ok(Self { model: model.to_owned(), vectors, input_tokens, asked: None })
    }
}
