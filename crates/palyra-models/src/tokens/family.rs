//! Which tokenizer a model has, as far as its name tells.
//!
//! OpenAI publishes its vocabularies, so those models are counted. The others either publish none or each their own: for them the count
//! of `o200k_base` is scaled by a factor that errs upwards. The factors are ours, not the vendors': Anthropic says of its newer
//! tokenizers that a text can come to a third more tokens than before, and its older ones lay a fifth above; the vocabularies of open
//! models are smaller (32 to 150 thousand tokens against 200); Gemini's is larger.

use palyra_common::runtime_contract_enum;

use super::tokenizer::Encoding;

runtime_contract_enum! {
    /// Models that share a tokenizer, or about do.
    pub enum TokenFamily("token_family") {
        /// GPT-4o and later, the o series, gpt-oss.
        O200k = "o200k",
        /// GPT-4, GPT-3.5, embeddings of the third generation.
        Cl100k = "cl100k",
        /// Claude.
        Anthropic = "anthropic",
        /// Gemini and Gemma.
        Gemini = "gemini",
        /// Models with open weights: Llama, Qwen, Mistral, DeepSeek and the like.
        Open = "open",
        /// Anything else.
        Unknown = "unknown",
    }
}

/// How large a text is, counted in both ways there are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TextSize {
    /// Tokens of the family's vocabulary, or of the one that stands in for it.
    pub(super) vocabulary: u64,
    /// Tokens by the rule of thumb.
    pub(super) estimate: u64,
}

/// Beginnings of model names; the first that fits counts, so longer ones stand before shorter ones.
const NAMES: [(&str, TokenFamily); 34] = [
    ("claude", TokenFamily::Anthropic),
    ("gemini", TokenFamily::Gemini),
    ("gemma", TokenFamily::Gemini),
    ("gpt-4o", TokenFamily::O200k),
    ("gpt-4.1", TokenFamily::O200k),
    ("gpt-4.5", TokenFamily::O200k),
    ("gpt-4", TokenFamily::Cl100k),
    ("gpt-3.5", TokenFamily::Cl100k),
    ("gpt-35", TokenFamily::Cl100k),
    ("gpt-5", TokenFamily::O200k),
    ("gpt-6", TokenFamily::O200k),
    ("gpt-oss", TokenFamily::O200k),
    ("chatgpt-4o", TokenFamily::O200k),
    ("codex-mini", TokenFamily::O200k),
    ("o1", TokenFamily::O200k),
    ("o3", TokenFamily::O200k),
    ("o4", TokenFamily::O200k),
    ("text-embedding-3", TokenFamily::Cl100k),
    ("text-embedding-ada", TokenFamily::Cl100k),
    ("llama", TokenFamily::Open),
    ("qwen", TokenFamily::Open),
    ("qwq", TokenFamily::Open),
    ("mistral", TokenFamily::Open),
    ("mixtral", TokenFamily::Open),
    ("ministral", TokenFamily::Open),
    ("magistral", TokenFamily::Open),
    ("codestral", TokenFamily::Open),
    ("devstral", TokenFamily::Open),
    ("deepseek", TokenFamily::Open),
    ("phi", TokenFamily::Open),
    ("kimi", TokenFamily::Open),
    ("glm", TokenFamily::Open),
    ("minimax", TokenFamily::Open),
    ("grok", TokenFamily::Open),
];

impl TokenFamily {
    /// The family of a model, by its name alone: `gpt-5`, `anthropic/claude-sonnet-4.5`, `llama3.2:3b`.
    #[must_use]
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let family = NAMES.iter().find(|(start, _)| {
            let rest = name.strip_prefix(start);
            // `o1` is a model, `o1x` would be another: a short name ends where it ends.
            rest.is_some_and(|rest| start.len() > 2 || rest.is_empty() || rest.starts_with('-'))
        });
        family.map_or(Self::Unknown, |(_, family)| *family)
    }

    /// How many tokens a text of this size is at most.
    pub(super) fn most(self, size: TextSize) -> u64 {
        match self.counted_by() {
            (_, 1_000) => size.vocabulary,
            (_, factor) => size.vocabulary.saturating_mul(factor).div_ceil(1_000).max(size.estimate),
        }
    }

    /// How many tokens a text of this size is at least. Where the vocabulary is published that is its count. Other vocabularies are at most a
    /// little larger than `o200k_base` and save less than a quarter; for scripts that `o200k_base` knows badly, where they can save more, the
    /// rule of thumb (a character is a token) gives less than its count.
    pub(super) fn least(self, size: TextSize) -> u64 {
        match self.counted_by() {
            (_, 1_000) => size.vocabulary,
            _ => size.vocabulary.min(size.estimate).saturating_mul(3) / 4,
        }
    }

    /// The vocabulary to count with, and what to multiply the count by, in thousandths.
    pub(super) const fn counted_by(self) -> (Encoding, u64) {
        match self {
            Self::O200k => (Encoding::O200kBase, 1_000),
            Self::Cl100k => (Encoding::Cl100kBase, 1_000),
            Self::Gemini => (Encoding::O200kBase, 1_250),
            Self::Open => (Encoding::O200kBase, 1_400),
            Self::Anthropic | Self::Unknown => (Encoding::O200kBase, 1_700),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_family() {
        for (model, family) in [
            ("gpt-4o-mini-2024-07-18", TokenFamily::O200k),
            ("gpt-4.1", TokenFamily::O200k),
            ("gpt-4-turbo", TokenFamily::Cl100k),
            ("o3-mini", TokenFamily::O200k),
            ("o1", TokenFamily::O200k),
            ("o1x", TokenFamily::Unknown),
            ("openai/gpt-5.2", TokenFamily::O200k),
            ("anthropic/claude-sonnet-4.5", TokenFamily::Anthropic),
            ("models/gemini-2.5-pro", TokenFamily::Gemini),
            ("Llama3.2:3b", TokenFamily::Open),
            ("gpt-oss:20b", TokenFamily::O200k),
            ("", TokenFamily::Unknown),
            ("my-finetune", TokenFamily::Unknown),
        ] {
            assert_eq!(TokenFamily::of(model), family, "{model}");
        }
    }

    #[test]
    fn no_factor_makes_a_count_smaller() {
        for family in TokenFamily::ALL {
            assert!(family.counted_by().1 >= 1_000, "{family}");
        }
    }
}
