//! Interruptions: clocks that are set in every phase, calls that had or had not begun, executors that went away.

use palyra_common::ToolVerdict;
use palyra_tools::{Concurrency, Repeatability};

use super::tests::{AT, decided, finished, spec, started, turn};
use super::*;

const HOUR: i64 = 60 * 60 * 1000;

/// A machine with one call that was decided upon.
fn with_call(verdict: ToolVerdict, repeat: Repeatability) -> Machine {
    let mut spec = spec();
    spec.limits.approval_timeout_ms = 60_000;
    let mut machine = Machine::accept(spec, AT);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["w"]), AT).unwrap();
    machine.step(decided("t1c1", verdict, Concurrency::Exclusive, repeat), AT).unwrap();
    machine
}

/// A machine in each phase that has a deadline.
fn waiting_machines() -> Vec<Machine> {
    let mut paused = started();
    paused.step(Input::Pause { by: "ada".into() }, AT).unwrap();
    vec![
        Machine::accept(spec(), AT),
        started(),
        paused,
        with_call(ToolVerdict::Permit, Repeatability::NonRepeatable),
        with_call(ToolVerdict::NeedsApproval, Repeatability::NonRepeatable),
    ]
}

#[test]
fn a_clock_that_was_set_moves_every_deadline_and_meets_none() {
    for machine in waiting_machines() {
        let phase = machine.phase();
        let deadline = machine.next_deadline().unwrap();
        for by_ms in [HOUR, 30 * 24 * HOUR, -HOUR, -30 * 24 * HOUR] {
            let mut machine = machine.clone();
            let actions = machine.step(Input::ClockAdjusted { by_ms, gap: ClockGap::ClockSet }, AT.shifted(by_ms));
            assert_eq!(actions.unwrap(), [], "{phase}");
            assert_eq!(machine.phase(), phase);
            assert_eq!(machine.next_deadline(), Some(deadline.shifted(by_ms)), "{phase}");
            assert_eq!(machine.due(deadline.shifted(by_ms - 1)), [], "{phase}");
            assert_ne!(machine.due(deadline.shifted(by_ms)), [], "{phase}");
        }
    }
}

#[test]
fn a_restart_asks_only_about_calls_that_may_have_happened() {
    let begun = || Input::ToolBegun { call_id: "t1c1".into() };
    for (repeat, reports, asks) in [
        (Repeatability::Repeatable, false, false),
        (Repeatability::Repeatable, true, false),
        (Repeatability::UntilBegun, false, false),
        (Repeatability::UntilBegun, true, true),
        (Repeatability::NonRepeatable, false, true),
        (Repeatability::NonRepeatable, true, true),
    ] {
        let mut machine = with_call(ToolVerdict::Permit, repeat);
        if reports {
            assert_eq!(machine.step(begun(), AT).unwrap(), []);
        }
        let actions = machine.step(Input::Recovered, AT).unwrap();
        let executes = actions.iter().any(|action| matches!(action, Action::Execute { .. }));
        assert_eq!((executes, machine.phase() == RunLifecyclePhase::WaitingForApproval), (!asks, asks), "{repeat}");
    }
    let mut over = with_call(ToolVerdict::Permit, Repeatability::UntilBegun);
    over.step(finished("t1c1", "ok"), AT).unwrap();
    assert!(over.step(begun(), AT).is_err(), "a call that is over does not begin");
}

#[test]
fn a_call_whose_executor_went_away_is_a_question_unless_it_may_be_repeated() {
    for (repeat, asks) in
        [(Repeatability::Repeatable, false), (Repeatability::UntilBegun, true), (Repeatability::NonRepeatable, true)]
    {
        let mut machine = with_call(ToolVerdict::Permit, repeat);
        let Input::ToolFinished { call_id, tool, mut result } = finished("t1c1", "gone") else { unreachable!() };
        result.broke_off = true;
        let actions = machine.step(Input::ToolFinished { call_id, tool, result }, AT).unwrap();
        let asked = actions.iter().find_map(|action| match action {
            Action::RequestApproval(request) => Some(request.question),
            _ => None,
        });
        assert_eq!(asked, asks.then_some(Question::RunAgain), "{repeat}");
    }
}
