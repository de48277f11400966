//! What there is to tell about the verdict on a run's objective.

use palyra_common::JournalEvent;
use serde_json::Value;

use super::text::shortened;
use crate::console::one_line;

const KIND: &str = "objective.judged";
/// Most characters of the judge's words that are shown.
const SHOWN: usize = 160;

/// The line that a person who follows a run sees.
pub(crate) fn line(event: &JournalEvent) -> Option<String> {
    Some(format!("objective: {}", about(event)?))
}

/// What the judge found.
pub(crate) fn about(event: &JournalEvent) -> Option<String> {
    if event.kind != KIND {
        return None;
    }
    let found = event.payload.pointer("/input/judged/found")?;
    let text = |place: &str| found.pointer(place).and_then(Value::as_str).map(|text| shortened(&one_line(text), SHOWN));
    if let Some(why) = text("/failed/message") {
        return Some(format!("not judged: {why}"));
    }
    let verdict = match text("/verdict/verdict")?.as_str() {
        "met" => "met".to_owned(),
        "not_met" => "not met yet".to_owned(),
        other => other.to_owned(),
    };
    let grounds = text("/verdict/grounds").unwrap_or_default();
    Some(if grounds.is_empty() { verdict } else { format!("{verdict}; the judge says: {grounds}") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(found: &Value) -> JournalEvent {
        JournalEvent { kind: KIND.into(), payload: json!({"input": {"judged": {"judgement": 1, "found": found}}}) }
    }

    #[test]
    fn a_verdict_is_one_line() {
        let unmet = json!({"verdict": {"verdict": "not_met", "grounds": "one test\nfails", "missing": []}});
        assert_eq!(line(&event(&unmet)).unwrap(), "objective: not met yet; the judge says: one test fails");
        let failed = json!({"failed": {"code": "x", "message": "no model"}});
        assert_eq!(about(&event(&failed)).unwrap(), "not judged: no model");
        assert_eq!(about(&JournalEvent { kind: "model.call".into(), payload: Value::Null }), None);
    }
}
