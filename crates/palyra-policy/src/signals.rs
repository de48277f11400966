//! Signs that a text tries to give orders, as policies see them.
//!
//! They come from heuristics that an attacker can word around, so they are good for asking once more and good for nothing else. What holds
//! against a hostile text are labels, provenance and the envelope. No shipped policy looks at signals, and the linter points out a permit
//! that does: a permission must not hang on the absence of a warning.

use std::collections::BTreeSet;

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

runtime_contract_enum! {
    /// What was noticed in a text that anyone may have written.
    pub enum SignalKind("policy_signal") {
        /// A phrase that tries to replace earlier instructions.
        InstructionOverride = "instruction_override",
        /// Text dressed up as another role of the conversation.
        RoleMarker = "role_marker",
        /// Text dressed up as a tool call or its result.
        ToolCallLookalike = "tool_call_lookalike",
        /// Text a person does not see.
        HiddenText = "hidden_text",
        /// A request or device to send data away.
        Exfiltration = "exfiltration",
        /// A request to keep something from the user.
        Concealment = "concealment",
    }
}

runtime_contract_enum! {
    /// How much all signals of a text weigh together.
    #[derive(Default)]
    pub enum SignalConfidence("policy_signal_confidence") {
        /// Nothing was noticed.
        #[default]
        None = "none",
        /// Worth a note.
        Low = "low",
        /// Hardly by accident.
        Medium = "medium",
        /// Written to give orders.
        High = "high",
    }
}

/// The signals of one text, or of everything that a run has read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signals {
    /// What was noticed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<SignalKind>,
    /// How much it weighs: the heaviest text counts.
    #[serde(default)]
    pub confidence: SignalConfidence,
    /// Whether a value that steers this call was found in a text with signals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_source: bool,
}

impl Signals {
    /// Whether nothing was noticed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.confidence == SignalConfidence::None && !self.at_source
    }

    /// Adds the signals of another text. What was noticed once stays noticed.
    pub fn join(&mut self, other: &Self) {
        self.kinds.extend(other.kinds.iter().copied());
        self.confidence = self.confidence.max(other.confidence);
        self.at_source |= other.at_source;
    }

    /// What policies compare. A kind without a weight still counts: a request that was put together by hand must not look clean.
    pub(crate) fn counted(&self) -> SignalConfidence {
        if self.kinds.is_empty() { self.confidence } else { self.confidence.max(SignalConfidence::Low) }
    }
}
