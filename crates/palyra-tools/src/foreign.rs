//! What all tools share whose arguments and results are laid down elsewhere, by an outside server or a skill: a line about a call, and results that stay within
//! their limit.

use palyra_common::Label;
use serde_json::{Map, Value};

use crate::{ToolDeclaration, ToolOutput};

/// Longest value shown inside a line, in characters.
const SHOWN_CHARACTERS: usize = 120;

impl ToolDeclaration {
    /// A call in one line: the tool with its arguments, those first that decide where it goes.
    #[must_use]
    pub fn call_line(&self, arguments: &Value) -> String {
        let empty = Map::new();
        let members = arguments.as_object().unwrap_or(&empty);
        let steers = |name: &String| self.sinks.iter().any(|sink| sink.argument == *name);
        let mut named: Vec<(&String, &Value)> = members.iter().filter(|(_, value)| !value.is_null()).collect();
        named.sort_by_key(|(name, _)| !steers(name));
        let parts: Vec<String> = named.into_iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
        format!("{} ({})", self.name, parts.join(", "))
    }
}

impl ToolOutput {
    /// As much of a text as a result may hold; says of itself whether something was cut off.
    #[must_use]
    pub fn within(limit: usize, text: &str, label: Label) -> Self {
        let kept = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
        let mut output = Self::text(kept, label);
        output.truncated = kept.len() < text.len();
        output
    }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARACTERS).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_one_short_line() {
        assert_eq!(shown(&json!("a\nb")), "a b");
        assert_eq!(shown(&json!("é".repeat(200))).chars().count(), SHOWN_CHARACTERS + 1);
        assert_eq!(shown(&json!({"a": 1})), r#"{"a":1}"#);
    }

    #[test]
    fn a_result_is_cut_between_characters_and_says_so() {
        let cut = ToolOutput::within(3, "aéé", Label::system());
        assert_eq!((cut.content.as_str(), cut.truncated), ("aé", true));
        let whole = ToolOutput::within(5, "aéé", Label::system());
        assert_eq!((whole.content.as_str(), whole.truncated), ("aéé", false));
    }
}
