//! Events that belong to no run.

use palyra_agent::{HookFailure, HookOccurrence, HookSaid};
use palyra_common::{HookDecision, HookEvent, Timestamp, ToStableError as _};
use palyra_journal::Journal;
use serde_json::json;

use crate::hooks_support::{Does, Hooks, binding, failure, hasty};
use crate::support::Setup;

const ANSWER: &str = "[[turn]]\ntext = \"done\"";

async fn kinds(journal: &Journal) -> Vec<String> {
    let records = journal.read(|reader| reader.range(1, 1_000)).await.unwrap();
    records.iter().map(|record| record.kind.to_string()).collect()
}

fn quarantined() -> HookOccurrence {
    let payload = json!({ "skill_id": "acme.guard", "reason": "tampered" });
    HookOccurrence::new(HookEvent::SkillQuarantined, Timestamp(7), payload)
}

#[tokio::test]
async fn an_event_is_told_in_order_and_journaled() {
    let hooks = Hooks::doing(&[
        ("note", Does::Say(HookDecision::Annotate)),
        ("wants", Does::Say(HookDecision::Block)),
        ("slow", Does::Hang),
    ]);
    let bench = Setup::script(ANSWER).hooks(&hooks).start().await;
    let event = HookEvent::SkillQuarantined;
    let other = binding("other", HookEvent::SkillEnabled);
    bench.bind(vec![binding("wants", event), hasty("slow", event), binding("note", event), other]).await;
    let occurrence = quarantined();
    let dispatch = bench.engine.dispatch_event(occurrence.clone()).await.unwrap();
    let order: Vec<&str> = dispatch.results.iter().map(|result| result.hook.as_str()).collect();
    assert_eq!(order, ["note", "slow", "wants"]);
    assert!(matches!(&dispatch.results[0].said, HookSaid::Answered(answer) if answer.reason == "note says so"));
    assert_eq!(failure(&dispatch.results[1]), HookFailure::TimedOut);
    assert_eq!(failure(&dispatch.results[2]), HookFailure::OutOfPhase(HookDecision::Block));
    assert_eq!(dispatch.occurrence_id, occurrence.id);
    assert_eq!(hooks.told()[0].1, occurrence);
    let kinds = kinds(&bench.journal).await;
    assert_eq!(kinds[kinds.len() - 2..], ["hook_event.occurred", "hook_event.answered"]);
}

#[tokio::test]
async fn an_event_that_nobody_is_bound_to_leaves_no_record() {
    let hooks = Hooks::doing(&[]);
    let bench = Setup::script(ANSWER).hooks(&hooks).start().await;
    bench.bind(vec![binding("other", HookEvent::SkillEnabled)]).await;
    let before = kinds(&bench.journal).await;
    assert!(bench.engine.dispatch_event(quarantined()).await.unwrap().results.is_empty());
    assert_eq!(kinds(&bench.journal).await, before);
    assert!(hooks.told().is_empty());
}

#[tokio::test]
async fn events_of_runs_are_left_to_runs() {
    let bench = Setup::script(ANSWER).start().await;
    let foreign = HookOccurrence::new(HookEvent::RunBeforeTool, Timestamp(7), json!({}));
    assert_eq!(bench.engine.dispatch_event(foreign).await.unwrap_err().to_stable().code, "hook_event_invalid");
}
