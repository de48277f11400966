//! What a model can be asked for, by its name.
//!
//! Series 2.5 thinks within a budget, series 3 and later at a level; older ones do not think and know an older way of
//! saying schemas. A name without a version is taken for the newest.

use serde_json::{Value, json};

use crate::request::ReasoningEffort;
use crate::schema::SchemaDialect;

/// Which series a model belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Series {
    major: u32,
    minor: u32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Pro,
    Flash,
}

impl Series {
    /// Reads a model's name.
    pub(super) fn of(model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        let kind = if name.contains("pro") { Kind::Pro } else { Kind::Flash };
        let after = name.split_once("gemini-").map_or("", |(_, after)| after);
        let mut numbers = after.split('-').next().unwrap_or_default().split('.').map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), minor) => Self { major, minor: minor.and_then(Result::ok).unwrap_or_default(), kind },
            _ => Self { major: u32::MAX, minor: 0, kind },
        }
    }

    /// Whether schemas may be sent as they are.
    pub(super) fn takes_json_schema(self) -> bool {
        self.from(2, 5)
    }

    /// The form of schemas.
    pub(super) fn schemas(self) -> SchemaDialect {
        if self.takes_json_schema() { SchemaDialect::GeminiJson } else { SchemaDialect::GeminiOpenApi }
    }

    /// Whether an answer of a given shape and tools may be asked for together.
    pub(super) fn takes_shape_with_tools(self) -> bool {
        self.from(3, 0)
    }

    /// Whether every first call of a turn has to come back with its signature.
    pub(super) fn demands_signatures(self) -> bool {
        self.from(3, 0)
    }

    /// What is said about thinking; none if nothing is to be said.
    pub(super) fn thinking(self, effort: Option<ReasoningEffort>, bound: Option<u32>) -> Option<Value> {
        let effort = effort?;
        if self.from(3, 0) {
            let level = match (effort, self.kind) {
                (ReasoningEffort::Minimal, Kind::Flash) => "minimal",
                (ReasoningEffort::Minimal, Kind::Pro) | (ReasoningEffort::Low, _) => "low",
                // The first of the series knows two levels only.
                (ReasoningEffort::Medium, Kind::Pro) if (self.major, self.minor) == (3, 0) => "high",
                (ReasoningEffort::Medium, _) => "medium",
                (ReasoningEffort::High, _) => "high",
            };
            return Some(json!({ "thinkingLevel": level, "includeThoughts": true }));
        }
        if !self.from(2, 5) {
            return None;
        }
        // All of the series take between 512 and 24,576 tokens. They count as answer: half of a given bound stays for the words, and
        // where that leaves too little, the model thinks as little as it can.
        let wanted: u32 = match effort {
            ReasoningEffort::Minimal => 0,
            ReasoningEffort::Low => 2048,
            ReasoningEffort::Medium => 8192,
            ReasoningEffort::High => 24_576,
        };
        let budget = wanted.min(bound.map_or(u32::MAX, |bound| bound / 2));
        Some(match (budget, self.kind) {
            (512.., _) => json!({ "thinkingBudget": budget, "includeThoughts": true }),
            (_, Kind::Flash) => json!({ "thinkingBudget": 0 }),
            // It cannot be told not to think.
            (_, Kind::Pro) => json!({ "thinkingBudget": 128 }),
        })
    }

    fn from(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_series() {
        let numbers = |name: &str| {
            let series = Series::of(name);
            (series.major, series.minor)
        };
        assert_eq!(numbers("gemini-2.5-flash-lite"), (2, 5));
        assert_eq!(numbers("models/gemini-3.1-pro-preview"), (3, 1));
        assert_eq!(numbers("gemini-3-flash-preview"), (3, 0));
        assert_eq!(numbers("gemini-1.5-pro-002"), (1, 5));
        assert_eq!(numbers("gemini-flash-latest"), (u32::MAX, 0));
        assert_eq!(numbers("gemma-3-27b-it"), (u32::MAX, 0));
    }

    #[test]
    fn each_series_is_told_to_think_in_its_own_way() {
        let said = |name: &str, effort, bound| Series::of(name).thinking(Some(effort), bound);
        assert_eq!(said("gemini-2.0-flash", ReasoningEffort::High, None), None);
        assert_eq!(
            said("gemini-2.5-pro", ReasoningEffort::High, Some(4000)),
            Some(json!({"thinkingBudget": 2000, "includeThoughts": true}))
        );
        assert_eq!(said("gemini-2.5-pro", ReasoningEffort::High, Some(600)), Some(json!({"thinkingBudget": 128})));
        assert_eq!(said("gemini-2.5-flash", ReasoningEffort::Minimal, None), Some(json!({"thinkingBudget": 0})));
        assert_eq!(
            said("gemini-3-pro-preview", ReasoningEffort::Medium, None),
            Some(json!({"thinkingLevel": "high", "includeThoughts": true}))
        );
        assert_eq!(
            said("gemini-3.5-flash", ReasoningEffort::Minimal, None),
            Some(json!({"thinkingLevel": "minimal", "includeThoughts": true}))
        );
        assert_eq!(Series::of("gemini-3-pro").thinking(None, None), None);
    }
}
