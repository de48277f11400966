//! What there is to tell about sources of tools that a run has to do without.

use palyra_common::JournalEvent;
use serde_json::Value;

use crate::console::one_line;

const KIND: &str = "tools.unavailable";

/// The lines that a person who follows a run sees.
pub(crate) fn lines(event: &JournalEvent) -> Vec<String> {
    sources(event).into_iter().map(|source| format!("tools not available: {source}")).collect()
}

/// All of them in one line.
pub(crate) fn about(event: &JournalEvent) -> Option<String> {
    (event.kind == KIND).then(|| sources(event).join("; "))
}

fn sources(event: &JournalEvent) -> Vec<String> {
    let listed = event.payload.pointer("/note/tools_unavailable/sources").and_then(Value::as_array);
    let text =
        |source: &Value, field: &str| source.get(field).and_then(Value::as_str).map(one_line).unwrap_or_default();
    let named = |source: &Value| format!("{}: {}", text(source, "source"), text(source, "reason"));
    listed.filter(|_| event.kind == KIND).into_iter().flatten().map(named).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_source_is_named_with_its_reason() {
        let sources = json!([{"source": "mcp:mail", "reason": "it is slow"}]);
        let payload = json!({"note": {"tools_unavailable": {"sources": sources}}});
        let event = JournalEvent { kind: KIND.into(), payload: payload.clone() };
        assert_eq!(lines(&event), ["tools not available: mcp:mail: it is slow"]);
        assert_eq!(about(&event).as_deref(), Some("mcp:mail: it is slow"));
        let other = JournalEvent { kind: "model.call".into(), payload };
        assert_eq!((lines(&other), about(&other)), (Vec::new(), None));
    }
}
