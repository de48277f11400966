//! The published vocabularies, and how many tokens of them a text is.

use std::sync::LazyLock;

use palyra_common::runtime_contract_enum;

use super::merge::Merger;
use super::pieces::{Pattern, Pieces};
use super::vocabulary::Vocabulary;

runtime_contract_enum! {
    /// A published vocabulary.
    pub enum Encoding("token_encoding") {
        /// That of GPT-4o and later.
        O200kBase = "o200k_base",
        /// That of GPT-3.5, GPT-4 and the embedding models.
        Cl100kBase = "cl100k_base",
    }
}

static O200K: LazyLock<Vocabulary> =
    LazyLock::new(|| Vocabulary::new(include_bytes!("../../vocabularies/o200k_base.bin")));
static CL100K: LazyLock<Vocabulary> =
    LazyLock::new(|| Vocabulary::new(include_bytes!("../../vocabularies/cl100k_base.bin")));

impl Encoding {
    /// How many tokens this text is. Marks that mean something special to a model (`<|endoftext|>`) count as the text they are, as they
    /// do for a provider that is sent them in a message.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        self.tokenizer().count(text)
    }

    /// Something to count several texts with.
    pub(super) fn tokenizer(self) -> Tokenizer {
        let (vocabulary, pattern) = match self {
            Self::O200kBase => (&*O200K, Pattern::O200k),
            Self::Cl100kBase => (&*CL100K, Pattern::Cl100k),
        };
        Tokenizer { vocabulary, pattern, merger: Merger::new() }
    }
}

/// Counts texts, and remembers pieces from one to the next.
pub(super) struct Tokenizer {
    vocabulary: &'static Vocabulary,
    pattern: Pattern,
    merger: Merger,
}

impl Tokenizer {
    pub(super) fn count(&mut self, text: &str) -> u64 {
        Pieces::new(text, self.pattern).map(|piece| self.merger.count(self.vocabulary, piece)).sum()
    }
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tests;
