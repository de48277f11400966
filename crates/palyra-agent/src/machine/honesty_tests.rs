//! That an end and a call are told as what they were: failures as failures, refusals as refusals.

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToolVerdict};
use palyra_models::StopReason;
use palyra_tools::{Concurrency, Repeatability};

use super::tests::{AT, decided, finished, started, turn};
use super::*;

fn answer(number: u32, stop_reason: StopReason) -> Input {
    match turn(number, 1, "that is all", &[]) {
        Input::ModelTurnFinished(turn) => Input::ModelTurnFinished(ModelTurn { stop_reason, ..turn }),
        other => other,
    }
}

fn permitted(call_id: &str) -> Input {
    decided(call_id, ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable)
}

fn failing(call_id: &str) -> Input {
    match finished(call_id, "it says why") {
        Input::ToolFinished { call_id, tool, mut result } => {
            result.failure = Some("exit code 1".to_owned());
            Input::ToolFinished { call_id, tool, result }
        }
        other => other,
    }
}

fn ended(machine: &Machine) -> (RunLifecyclePhase, TerminationReason, Option<String>, bool) {
    let (Phase::Completed(end) | Phase::Failed(end)) = machine.state() else { panic!("{:?}", machine.state()) };
    (machine.phase(), end.reason, end.detail.as_ref().map(|detail| detail.code.clone()), end.answer.is_some())
}

fn not_run(actions: &[Action]) -> Vec<(String, String)> {
    let told = |action: &Action| match action {
        Action::NotRun { call_id, error, .. } => Some((call_id.clone(), error.code.clone())),
        _ => None,
    };
    actions.iter().filter_map(told).collect()
}

#[test]
fn an_answer_that_says_no_is_kept_and_ends_the_run_as_failed() {
    let mut machine = started();
    machine.step(answer(1, StopReason::NotDone), AT).unwrap();
    let code = Some("task_not_done".to_owned());
    assert_eq!(ended(&machine), (RunLifecyclePhase::Failed, TerminationReason::FinalAnswer, code, true));
    assert!(!machine.may_be_taken_up());

    let mut machine = started();
    machine.step(answer(1, StopReason::EndTurn), AT).unwrap();
    assert_eq!(ended(&machine), (RunLifecyclePhase::Completed, TerminationReason::FinalAnswer, None, true));
}

#[test]
fn an_answer_right_after_a_call_that_failed_says_so_and_a_later_one_does_not() {
    let mut machine = started();
    machine.step(turn(1, 1, "", &["a"]), AT).unwrap();
    machine.step(permitted("t1c1"), AT).unwrap();
    machine.step(failing("t1c1"), AT).unwrap();
    let mut other = machine.clone();
    machine.step(answer(2, StopReason::EndTurn), AT).unwrap();
    let code = Some("last_call_failed".to_owned());
    assert_eq!(ended(&machine), (RunLifecyclePhase::Completed, TerminationReason::FinalAnswer, code, true));
    let Phase::Completed(end) = machine.state() else { panic!("not completed") };
    let message = end.detail.as_ref().map(|detail| detail.message.as_str());
    assert_eq!(message, Some("the last call before the answer failed: a: exit code 1"));

    other.step(turn(2, 1, "", &["b"]), AT).unwrap();
    other.step(permitted("t2c1"), AT).unwrap();
    other.step(finished("t2c1", "fine"), AT).unwrap();
    other.step(answer(3, StopReason::EndTurn), AT).unwrap();
    assert_eq!(ended(&other).2, None, "the newest call went well");
}

#[test]
fn every_call_that_is_not_made_is_told_at_once() {
    let mut machine = started();
    machine.step(turn(1, 1, "", &["a", "b"]), AT).unwrap();
    let denied = decided("t1c1", ToolVerdict::Deny, Concurrency::Shared, Repeatability::Repeatable);
    let actions = machine.step(denied, AT).unwrap();
    assert_eq!(not_run(&actions), [("t1c1".to_owned(), "denied".to_owned())]);
    let actions = machine.step(Input::Cancel { by: "me".into(), reason: None }, AT).unwrap();
    assert_eq!(not_run(&actions), [("t1c2".to_owned(), "run_ending".to_owned())]);
}

#[test]
fn a_call_that_cannot_be_made_has_its_own_code_and_going_on_with_it_is_a_circle() {
    let invalid = |call_id: &str| {
        let error = StableErrorEnvelope::new("invalid_path", ErrorCategory::Validation, "no such path can be");
        match decided(call_id, ToolVerdict::Deny, Concurrency::Exclusive, Repeatability::NonRepeatable) {
            Input::Decided(decided) => Input::Decided(Box::new(Decided { invalid: Some(Box::new(error)), ..*decided })),
            other => other,
        }
    };
    let mut machine = started();
    for number in 1..=3 {
        machine.step(turn(number, 1, "", &["a"]), AT).unwrap();
        let actions = machine.step(invalid(&format!("t{number}c1")), AT).unwrap();
        assert_eq!(not_run(&actions), [(format!("t{number}c1"), "invalid_path".to_owned())]);
    }
    let Phase::Failed(end) = machine.state() else { panic!("{:?}", machine.state()) };
    assert_eq!(end.detail.as_ref().map(|detail| detail.code.as_str()), Some("loop_detected"));
}
