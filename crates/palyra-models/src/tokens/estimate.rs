//! A rule of thumb for token counts.
//!
//! Budgets need a number before a call is made and no tokenizer is at hand. The rule: four ASCII characters make a token,
//! every other character is one token of its own, rounded up. For English prose and code this lies a little above what
//! byte-pair tokenizers give, for other scripts clearly above: a budget kept by this rule is kept in truth.

use crate::message::{Message, ToolSpec};

/// What the framing of one message costs on top of its text.
const MESSAGE_OVERHEAD: u32 = 4;

/// An estimate of a text that arrives in pieces: cutting it differently does not change the sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    ascii: usize,
    other: usize,
}

impl TokenEstimate {
    /// Adds a piece of the text.
    pub fn push(&mut self, text: &str) {
        self.ascii = self.ascii.saturating_add(text.bytes().filter(u8::is_ascii).count());
        // Characters outside ASCII: every byte that starts one.
        self.other = self.other.saturating_add(text.bytes().filter(|byte| *byte >= 0xC0).count());
    }

    /// About how many tokens the pieces make together.
    #[must_use]
    pub fn tokens(self) -> u32 {
        u32::try_from(self.ascii.div_ceil(4).saturating_add(self.other)).unwrap_or(u32::MAX)
    }
}

/// About how many tokens this text is.
#[must_use]
pub fn estimate_tokens(text: &str) -> u32 {
    let mut estimate = TokenEstimate::default();
    estimate.push(text);
    estimate.tokens()
}

/// About how many tokens this message is.
#[must_use]
pub fn estimate_message_tokens(message: &Message) -> u32 {
    message.tool_calls.iter().fold(MESSAGE_OVERHEAD.saturating_add(estimate_tokens(&message.content)), |sum, call| {
        sum.saturating_add(MESSAGE_OVERHEAD)
            .saturating_add(estimate_tokens(&call.name))
            .saturating_add(estimate_tokens(&call.arguments))
    })
}

/// About how many tokens the description of this tool is.
#[must_use]
pub fn estimate_tool_tokens(tool: &ToolSpec) -> u32 {
    MESSAGE_OVERHEAD
        .saturating_add(estimate_tokens(&tool.name))
        .saturating_add(estimate_tokens(&tool.description))
        .saturating_add(estimate_tokens(&tool.input_schema.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_as_documented() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("äöü", 3), ("ab漢字", 3), ("🦀", 1)]
        {
            assert_eq!(estimate_tokens(text), tokens, "{text}");
        }
    }

    #[test]
    fn joining_texts_never_costs_more_than_the_parts() {
        let (left, right) = ("hello wörld ", "and more");
        assert!(estimate_tokens(&format!("{left}{right}")) <= estimate_tokens(left) + estimate_tokens(right));
    }
}
