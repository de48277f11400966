//! What there is to tell about a model call that is over: who was asked in vain, and what its bill says of the budgets.

use palyra_common::JournalEvent;
use palyra_models::Answering;
use serde_json::Value;

use super::text::shortened;
use crate::console::one_line;

/// Kinds of records that end a model call, with where the call stands in them.
const KINDS: [(&str, &str); 2] =
    [("model.turn_finished", "/input/model_turn_finished"), ("model.failed", "/input/model_failed")];
/// Most characters of one thing that is told.
const SHOWN: usize = 240;

/// Whether the failed attempts of a call were told as they happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempts {
    Told,
    Untold,
}

/// Whether an event ends a model call.
pub(crate) fn is_one(event: &JournalEvent) -> bool {
    KINDS.iter().any(|(kind, _)| *kind == event.kind)
}

/// The turn whose model call an event begins, if it is such an event.
pub(crate) fn begins(event: &JournalEvent) -> Option<u32> {
    let turn = (event.kind == "model.call").then(|| event.payload.pointer("/action/call_model/turn")).flatten()?;
    turn.as_u64().and_then(|turn| u32::try_from(turn).ok())
}

/// The lines that a person who follows a run sees.
pub(crate) fn lines(event: &JournalEvent, told: Attempts) -> Vec<String> {
    let Some(call) = call(event) else { return Vec::new() };
    let failed = attempts(call).filter(|_| told == Attempts::Untold).map(|tried| format!("model: {tried}"));
    failed.chain(notices(call).map(|notice| format!("budget: {notice}"))).collect()
}

/// The same in one line, if there is anything.
pub(crate) fn about(event: &JournalEvent) -> Option<String> {
    let call = call(event)?;
    let told: Vec<String> = attempts(call).chain(notices(call)).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn call(event: &JournalEvent) -> Option<&Value> {
    let (_, place) = KINDS.iter().find(|(kind, _)| *kind == event.kind)?;
    event.payload.pointer(place)
}

fn attempts(call: &Value) -> impl Iterator<Item = String> {
    let text = |attempt: &Value, place: &str| attempt.pointer(place).and_then(Value::as_str).map(one_line);
    list(call, "/attempts").map(move |attempt| {
        let part = |place: &str| text(attempt, place).unwrap_or_default();
        let asked = Answering { provider: part("/asked/provider"), model: part("/asked/model"), credential: None };
        let told = format!("{asked} failed ({}): {}", part("/error/class"), part("/error/message"));
        shortened(&told, SHOWN)
    })
}

fn notices(call: &Value) -> impl Iterator<Item = String> {
    list(call, "/cost/notices").filter_map(Value::as_str).map(|notice| shortened(&one_line(notice), SHOWN))
}

fn list<'a>(call: &'a Value, place: &str) -> impl Iterator<Item = &'a Value> {
    call.pointer(place).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_failed_and_what_was_spent_is_told() {
        let error = json!({"class": "rate_limit", "message": "the model server\u{1b} answered 429"});
        let attempt = json!({"asked": {"provider": "work", "model": "large"}, "error": error, "wait_ms": 3});
        let cost = json!({"micro_usd": 5, "notices": ["$8.00 is spent on day 2026-11-16"]});
        let turn = json!({"turn": 1, "attempts": [attempt], "cost": cost});
        let event = JournalEvent {
            kind: "model.turn_finished".into(),
            payload: json!({"input": {"model_turn_finished": turn}}),
        };
        let tried = "work/large failed (rate_limit): the model server\u{fffd} answered 429";
        assert_eq!(lines(&event, Attempts::Told), ["budget: $8.00 is spent on day 2026-11-16"]);
        assert_eq!(
            lines(&event, Attempts::Untold),
            [format!("model: {tried}"), "budget: $8.00 is spent on day 2026-11-16".to_owned()]
        );
        assert_eq!(about(&event).unwrap(), format!("{tried}; $8.00 is spent on day 2026-11-16"));
        let plain = JournalEvent { payload: json!({"input": {"model_turn_finished": {"turn": 1}}}), ..event };
        assert!(lines(&plain, Attempts::Untold).is_empty() && about(&plain).is_none());
    }
}
