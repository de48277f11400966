//! What there is to tell about a summary that took the place of the older part of a run's context.

use palyra_common::{JournalEvent, RunId};
use serde_json::Value;

use super::text::shortened;

const KIND: &str = "context.compacted";

/// The line that a person who follows a run sees: what was summarised, what it saved, how to look at it.
pub(crate) fn line(run_id: RunId, event: &JournalEvent) -> Option<String> {
    let about = about(event)?;
    Some(format!("context summarised: {about}; see it with: palyra runs context {run_id}"))
}

/// What was summarised and what it saved.
pub(crate) fn about(event: &JournalEvent) -> Option<String> {
    if event.kind != KIND {
        return None;
    }
    let summary = event.payload.pointer("/input/compacted")?;
    let steps = summary.get("replaces").and_then(Value::as_u64)?;
    let how = match summary.get("method").and_then(Value::as_str) {
        Some("model") => "by a model",
        _ => "by extraction, without a model",
    };
    let mut text = format!("{steps} older step{} {how}", if steps == 1 { "" } else { "s" });
    let account = summary.get("account");
    let number = |name: &str| account.and_then(|account| account.get(name)).and_then(Value::as_u64);
    if let (Some(before), Some(after)) = (number("tokens_before"), number("tokens_after")) {
        text.push_str(&format!(", about {before} → {after} tokens"));
    }
    if let Some(why) = account.and_then(|account| account.get("why")).and_then(Value::as_str) {
        text.push_str(&format!(" ({})", shortened(why, 80)));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(compacted: &Value) -> JournalEvent {
        JournalEvent { kind: KIND.into(), payload: json!({"input": {"compacted": compacted}}) }
    }

    #[test]
    fn a_summary_is_one_line_with_what_it_saved() {
        let account = json!({"tokens_before": 1200, "tokens_after": 300, "task_id": "01"});
        let made = event(&json!({"replaces": 4, "summary": "s", "method": "model", "account": account}));
        let id = RunId::from_u128(1);
        assert_eq!(
            line(id, &made).unwrap(),
            format!(
                "context summarised: 4 older steps by a model, about 1200 → 300 tokens; see it with: palyra runs context {id}"
            )
        );
        let account =
            json!({"tokens_before": 9, "tokens_after": 3, "why": "model_timeout: the server\u{1b} took too long"});
        let fallen = event(&json!({"replaces": 1, "summary": "s", "method": "extractive", "account": account}));
        assert_eq!(
            about(&fallen).unwrap(),
            "1 older step by extraction, without a model, about 9 → 3 tokens (model_timeout: the server\u{fffd} took too long)"
        );
        let old = event(&json!({"replaces": 2, "summary": "s", "method": "model"}));
        assert_eq!(about(&old).unwrap(), "2 older steps by a model", "tapes from before tell less");
        assert_eq!(about(&JournalEvent { kind: "model.call".into(), payload: json!({}) }), None);
    }
}
