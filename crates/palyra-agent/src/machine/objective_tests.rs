use palyra_common::{AuxiliaryTaskId, ErrorCategory, InputMode, RunLifecyclePhase, RunMode, ToolVerdict};
use palyra_tools::{Concurrency, Repeatability};

use super::*;
use crate::machine::Input;
use crate::machine::tests::{decided, finished, spec, turn};
use crate::spec::{Objective, RunSpec};

const AT: Timestamp = Timestamp(1_000);

fn wanted(max_attempts: u32) -> RunSpec {
    RunSpec { objective: Some(Objective { text: "all tests pass".into(), max_attempts }), ..spec() }
}

fn verdict(judgement: u32, verdict: Verdict) -> Input {
    let found = Found::Verdict(Judgement {
        verdict,
        confidence: 0.9,
        grounds: "one test fails".into(),
        missing: vec!["the test of the parser".into()],
    });
    judged(judgement, found)
}

fn judged(judgement: u32, found: Found) -> Input {
    Input::Judged(Box::new(Judged { judgement, task_id: AuxiliaryTaskId::from_u128(1), found }))
}

/// A machine whose first answer waits for its verdict.
fn answered(spec: RunSpec) -> Machine {
    let mut machine = Machine::accept(spec, AT);
    machine.step(Input::Started, AT).unwrap();
    let actions = machine.step(turn(1, 1, "done", &[]), AT).unwrap();
    assert_eq!(actions, [Action::Judge { judgement: 1 }], "nothing is delivered yet");
    machine
}

fn ending(machine: &Machine) -> (RunLifecyclePhase, String, Option<String>) {
    let (Phase::Completed(end) | Phase::Failed(end)) = machine.state() else { panic!("{:?}", machine.state()) };
    let answer = end.answer.clone().map(|(answer, _)| answer);
    (machine.phase(), end.detail.clone().map(|detail| detail.code).unwrap_or_default(), answer)
}

fn calls_model(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::CallModel { .. }))
}

#[test]
fn without_an_objective_nothing_is_judged_and_nothing_is_different() {
    let mut machine = Machine::accept(spec(), AT);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "done", &[]), AT).unwrap();
    assert_eq!(ending(&machine).1, "");
    assert!(!serde_json::to_string(&machine).unwrap().contains("objective"), "older snapshots read as they are");
}

#[test]
fn an_answer_that_meets_the_objective_is_delivered_and_says_so() {
    let mut machine = answered(wanted(3));
    machine.step(verdict(1, Verdict::Met), AT).unwrap();
    assert_eq!(ending(&machine), (RunLifecyclePhase::Completed, "objective_met".into(), Some("done".into())));
    assert!(machine.step(verdict(1, Verdict::Met), AT).is_err(), "a verdict counts once");
}

#[test]
fn an_answer_that_does_not_is_followed_up_until_the_attempts_are_spent() {
    for unmet in [Verdict::NotMet, Verdict::Unclear] {
        let mut machine = answered(wanted(2));
        let actions = machine.step(verdict(1, unmet), AT).unwrap();
        assert!(calls_model(&actions));
        let Some(Item::Verdict { text, label }) = machine.items().last() else { panic!("{:?}", machine.items()) };
        assert!(text.contains("attempt 1 of 2") && text.contains("missing: the test of the parser"), "{text}");
        assert_eq!(label.integrity, Integrity::ToolTrusted, "never the user's");
        assert!(!machine.trusted().iter().any(|trusted| trusted.contains("parser")), "{:?}", machine.trusted());
        let actions = machine.step(turn(2, 1, "really done", &[]), AT).unwrap();
        assert_eq!(actions, [Action::Judge { judgement: 2 }]);
        machine.step(verdict(2, unmet), AT).unwrap();
        assert_eq!(
            ending(&machine),
            (RunLifecyclePhase::Failed, "objective_not_met".into(), Some("really done".into()))
        );
    }
}

#[test]
fn a_judge_that_cannot_be_asked_keeps_nobody_from_the_answer() {
    let mut machine = answered(wanted(3));
    let error = StableErrorEnvelope::new("budget_exceeded", ErrorCategory::Policy, "no money");
    machine.step(judged(1, Found::Failed(error)), AT).unwrap();
    assert_eq!(ending(&machine), (RunLifecyclePhase::Completed, "objective_not_judged".into(), Some("done".into())));
}

#[test]
fn the_limit_on_turns_counts_and_the_answer_is_not_lost() {
    let mut tight = wanted(9);
    tight.limits.max_turns = 1;
    let mut machine = answered(tight);
    machine.step(verdict(1, Verdict::NotMet), AT).unwrap();
    assert_eq!(ending(&machine).1, "objective_not_met");
}

#[test]
fn what_a_judge_says_about_untrusted_text_opens_no_flow() {
    for (mode, shown) in [(RunMode::Guarded, false), (RunMode::Strict, false), (RunMode::Open, true)] {
        let mut machine = Machine::accept(RunSpec { mode, ..wanted(3) }, AT);
        machine.step(Input::Started, AT).unwrap();
        machine.step(turn(1, 1, "", &["t"]), AT).unwrap();
        machine.step(decided("t1c1", ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable), AT).unwrap();
        let mut read = finished("t1c1", "a page from anywhere");
        let Input::ToolFinished { result, .. } = &mut read else { panic!("{read:?}") };
        result.label = Label::new(Integrity::Untrusted, Confidentiality::Private).from_source("web");
        machine.step(read, AT).unwrap();
        machine.step(turn(2, 1, "done", &[]), AT).unwrap();
        assert_eq!(machine.label_of_verdict().integrity, Integrity::Untrusted);
        machine.step(verdict(1, Verdict::NotMet), AT).unwrap();
        let Some(Item::Verdict { text, label }) = machine.items().last() else { panic!("{:?}", machine.items()) };
        assert_eq!(text.contains("one test fails"), shown, "{mode}: {text}");
        assert_eq!(text.contains("$v2"), !shown, "{mode}: {text}");
        let expected = if shown { Integrity::Untrusted } else { Integrity::ToolTrusted };
        assert_eq!(label.integrity, expected, "{mode}");
        assert_eq!(label.confidentiality, Confidentiality::Private, "how private it is does not change");
        let held = machine.readings().last().unwrap();
        assert!(held.is_untrusted() && held.label.sources.contains("web"), "{held:?}");
    }
}

#[test]
fn whoever_writes_meanwhile_is_heard_before_the_verdict() {
    let mut machine = answered(wanted(3));
    let more = |mode| Input::UserMessage { text: "and the docs".into(), mode };
    machine.step(more(InputMode::FollowUp), AT).unwrap();
    assert!(calls_model(&machine.step(verdict(1, Verdict::Met), AT).unwrap()));
    machine.step(turn(2, 1, "docs too", &[]), AT).unwrap();
    let actions = machine.step(more(InputMode::Interrupt), AT).unwrap();
    assert!(actions.contains(&Action::StopJudge { judgement: 2 }) && calls_model(&actions), "{actions:?}");
    assert!(machine.step(verdict(2, Verdict::Met), AT).is_err(), "nobody waits for it");
}

#[test]
fn a_verdict_survives_a_hold_and_a_restart() {
    let mut machine = answered(wanted(3));
    machine.step(Input::Pause { by: "p".into() }, AT).unwrap();
    assert_eq!(machine.step(Input::Recovered, AT).unwrap(), [Action::Judge { judgement: 1 }]);
    assert!(machine.step(verdict(1, Verdict::Met), AT).unwrap().is_empty(), "it is held");
    assert!(machine.step(Input::Recovered, AT).unwrap().is_empty(), "the verdict is there");
    machine.step(Input::Resume { by: "p".into(), over_budget: None, model: None }, AT).unwrap();
    assert_eq!(ending(&machine).1, "objective_met");

    let mut machine = answered(wanted(3));
    assert_eq!(machine.step(Input::Recovered, AT).unwrap(), [Action::Judge { judgement: 1 }]);
    let actions = machine.step(Input::Cancel { by: "p".into(), reason: None }, AT).unwrap();
    assert!(actions.contains(&Action::StopJudge { judgement: 1 }), "{actions:?}");
    assert_eq!(machine.phase(), RunLifecyclePhase::Aborted);
}
