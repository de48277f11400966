//! A run's plan as a checklist.

use palyra_client::api::PlanStepView;
use palyra_common::JournalEvent;

use super::text::shortened;
use crate::console::one_line;

const KIND: &str = "plan.updated";
/// Most characters of a step that are shown.
const SHOWN: usize = 100;

/// The checklist that a person who follows a run sees when it changes.
pub(crate) fn changed(event: &JournalEvent) -> Vec<String> {
    let steps = steps(event).unwrap_or_default();
    if steps.is_empty() { Vec::new() } else { std::iter::once("plan:".to_owned()).chain(lines(&steps)).collect() }
}

/// How far the plan of an event is.
pub(crate) fn about(event: &JournalEvent) -> Option<String> {
    let steps = steps(event)?;
    let done = steps.iter().filter(|step| step.status == "done").count();
    Some(format!("{done} of {} steps done", steps.len()))
}

/// One line per step.
pub(crate) fn lines(steps: &[PlanStepView]) -> Vec<String> {
    steps
        .iter()
        .map(|step| {
            let mark = match step.status.as_str() {
                "done" => 'x',
                "in_progress" => '>',
                _ => ' ',
            };
            format!("  [{mark}] {}", shortened(&one_line(&step.text), SHOWN))
        })
        .collect()
}

fn steps(event: &JournalEvent) -> Option<Vec<PlanStepView>> {
    let items = event.payload.pointer("/action/update_plan/items").filter(|_| event.kind == KIND)?;
    serde_json::from_value(items.clone()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_a_checklist() {
        let items = json!([
            {"text": "read", "status": "done"},
            {"text": "change\u{1b}[2J it", "status": "in_progress"},
            {"text": "test", "status": "pending"},
        ]);
        let event = JournalEvent { kind: KIND.into(), payload: json!({"action": {"update_plan": {"items": items}}}) };
        assert_eq!(changed(&event), ["plan:", "  [x] read", "  [>] change\u{fffd}[2J it", "  [ ] test"]);
        assert_eq!(about(&event).unwrap(), "1 of 3 steps done");
        assert!(changed(&JournalEvent { kind: "model.call".into(), payload: json!({}) }).is_empty());
    }
}
