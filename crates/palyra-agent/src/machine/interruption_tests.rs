//! Interruptions: clocks that are set in every phase, calls that had or had not begun, executors that went away.

use palyra_common::{HookDecision, HookEvent, ToolVerdict};
use palyra_tools::{Concurrency, Repeatability};

use super::hooks_tests::{answers, bound, hook, said};
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

/// A machine that waits for something in each way there is.
fn waiting_machines() -> Vec<Machine> {
    let paused = |mut machine: Machine| {
        machine.step(Input::Pause { by: "ada".into() }, AT).unwrap();
        machine
    };
    let asked = with_call(ToolVerdict::NeedsApproval, Repeatability::NonRepeatable);
    vec![
        Machine::accept(spec(), AT),
        started(),
        paused(started()),
        with_call(ToolVerdict::Permit, Repeatability::NonRepeatable),
        asked.clone(),
        paused(asked),
        asking_for_money(),
        asking_for_a_hook(),
        hooks_looking(),
        paused(hooks_looking()),
        compacting(),
        judging(),
        handed_back(),
        Machine { phase: Phase::Paused(taking_back()), ..started() },
    ]
}

/// A machine that is about to end, in each way there is.
fn ending_machines() -> Vec<Machine> {
    let mut stopping = with_call(ToolVerdict::Permit, Repeatability::NonRepeatable);
    stopping.step(Input::Cancel { by: "ada".into(), reason: None }, AT).unwrap();
    vec![stopping, Machine { phase: Phase::Running(taking_back()), ..started() }]
}

fn taking_back() -> Activity {
    let ending = Ending::without_answer(TerminationReason::FinalAnswer, None);
    Activity::TakingBack(Box::new(TakingBack { number: 1, ending, phase: RunLifecyclePhase::Completed }))
}

fn asking_for_money() -> Machine {
    let mut machine = started();
    let error =
        palyra_common::StableErrorEnvelope::new("budget_exceeded", palyra_common::ErrorCategory::Policy, "none");
    let refused = Input::BudgetRefused { turn: 1, attempt: 1, error: Box::new(error), cost: Cost::default() };
    machine.step(refused, AT).unwrap();
    let over_budget = Some(palyra_budget::MicroUsd(7));
    machine.step(Input::Resume { by: "ada".into(), over_budget, model: None }, AT).unwrap();
    machine
}

fn hooks_looking() -> Machine {
    let mut machine = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
    machine.step(Input::Started, AT).unwrap();
    machine
}

fn asking_for_a_hook() -> Machine {
    let mut machine = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
    let actions = machine.step(Input::Started, AT).unwrap();
    machine.step(answers(&actions, vec![said("h", HookDecision::RequestApproval)]), AT).unwrap();
    machine
}

fn compacting() -> Machine {
    let mut machine = started();
    machine.phase = Phase::Running(Activity::Compacting { replaces: 1 });
    machine
}

fn judging() -> Machine {
    let mut spec = spec();
    spec.objective = Some(crate::spec::Objective { text: "all".into(), max_attempts: 2 });
    let mut machine = Machine::accept(spec, AT);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "done", &[]), AT).unwrap();
    machine
}

fn handed_back() -> Machine {
    let mut spec = spec();
    spec.client_tools = vec![crate::spec::ClientTool {
        name: "ask".into(),
        description: String::new(),
        input_schema: serde_json::json!({}).into(),
    }];
    let mut machine = Machine::accept(spec, AT);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["client.ask"]), AT).unwrap();
    let permitted = decided("t1c1", ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable);
    machine.step(permitted, AT).unwrap();
    machine
}

/// The name of where a machine stands. A phase that is added has to be given one, and then a machine above.
fn standing(machine: &Machine) -> &'static str {
    let activity = |activity: &Activity| match activity {
        Activity::Model { .. } => "model",
        Activity::Compacting { .. } => "compacting",
        Activity::Tools(_) => "tools",
        Activity::Hooks(_) => "hooks",
        Activity::Judging(_) => "judging",
        Activity::TakingBack(_) => "taking back",
        Activity::HandedBack(_) => "handed back",
        Activity::Stopping { .. } => "stopping",
    };
    match machine.state() {
        Phase::Queued => "queued",
        Phase::Running(running) => activity(running),
        Phase::Paused(held) if activity(held) == "handed back" => "handed back",
        Phase::Paused(_) => "paused",
        Phase::WaitingForApproval(_) => "approval",
        Phase::AskingForMoney(_) => "money",
        Phase::AskingForHook(_) => "hook",
        Phase::Completed(_) | Phase::Failed(_) | Phase::Aborted(_) | Phase::Expired(_) => "over",
    }
}

#[test]
fn every_phase_is_there_that_is_not_over() {
    let machines = || waiting_machines().into_iter().chain(ending_machines());
    let standing: std::collections::BTreeSet<_> = machines().map(|machine| standing(&machine)).collect();
    let expected = [
        "approval",
        "compacting",
        "handed back",
        "hook",
        "hooks",
        "judging",
        "model",
        "money",
        "paused",
        "queued",
        "stopping",
        "taking back",
        "tools",
    ];
    assert_eq!(standing.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_run_that_is_ending_has_no_deadline_whatever_the_clock_says() {
    for machine in ending_machines() {
        for (by_ms, gap) in gaps() {
            let mut machine = machine.clone();
            machine.step(Input::ClockAdjusted { by_ms, gap }, AT.shifted(by_ms)).unwrap();
            assert_eq!((machine.next_deadline(), machine.due(AT.shifted(1000 * HOUR))), (None, Vec::new()));
        }
    }
}

/// What can happen to a clock beside a suspend, and what can happen by one.
fn gaps() -> impl Iterator<Item = (i64, ClockGap)> {
    let set = [HOUR, 30 * 24 * HOUR, -HOUR, -30 * 24 * HOUR];
    let both = set.into_iter().flat_map(|by_ms| [(by_ms, ClockGap::ClockSet), (by_ms, ClockGap::DaemonDown)]);
    both.chain([(HOUR, ClockGap::Suspended)])
}

#[test]
fn a_clock_that_was_set_moves_every_deadline_and_meets_none() {
    for machine in waiting_machines() {
        let at = standing(&machine);
        let deadline = machine.next_deadline().unwrap();
        for (by_ms, gap) in gaps().filter(|(_, gap)| *gap != ClockGap::Suspended) {
            let mut machine = machine.clone();
            let actions = machine.step(Input::ClockAdjusted { by_ms, gap }, AT.shifted(by_ms));
            assert_eq!(actions.unwrap(), [], "{at}");
            assert_eq!(standing(&machine), at);
            assert_eq!(machine.next_deadline(), Some(deadline.shifted(by_ms)), "{at}");
            assert_eq!(machine.due(deadline.shifted(by_ms - 1)), [], "{at}");
            assert_ne!(machine.due(deadline.shifted(by_ms)), [], "{at}");
        }
    }
}

#[test]
fn a_machine_that_wakes_up_meets_no_deadline_for_a_while() {
    for machine in waiting_machines() {
        let at = standing(&machine);
        let deadline = machine.next_deadline().unwrap();
        // All of the time is left when it is suspended, or a second.
        for asleep in [AT, deadline.shifted(-1_000)] {
            let (mut machine, awake) = (machine.clone(), asleep.shifted(HOUR));
            let suspended = Input::ClockAdjusted { by_ms: HOUR, gap: ClockGap::Suspended };
            assert_eq!(machine.step(suspended, awake).unwrap(), [], "{at}");
            assert_eq!(standing(&machine), at);
            let next = deadline.shifted(HOUR).max(awake.plus(AWAKE_GRACE));
            assert_eq!(machine.next_deadline(), Some(next), "{at}");
            assert_eq!(machine.due(next.shifted(-1)), [], "{at}");
            assert_ne!(machine.due(next), [], "{at}");
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
fn a_restored_call_waits_and_is_a_question_unless_it_may_be_repeated() {
    let resume = || Input::Resume { by: "ada".into(), over_budget: None, model: None };
    for (repeat, reports, asks) in [
        (Repeatability::Repeatable, false, false),
        (Repeatability::Repeatable, true, false),
        (Repeatability::UntilBegun, false, true),
        (Repeatability::UntilBegun, true, true),
        (Repeatability::NonRepeatable, false, true),
        (Repeatability::NonRepeatable, true, true),
    ] {
        for paused_before in [false, true] {
            let mut machine = with_call(ToolVerdict::Permit, repeat);
            if reports {
                machine.step(Input::ToolBegun { call_id: "t1c1".into() }, AT).unwrap();
            }
            if paused_before {
                machine.step(Input::Pause { by: "ada".into() }, AT).unwrap();
            }
            assert!(machine.is_interrupted_by_restore());
            let actions = machine.step(Input::Restored, AT).unwrap();
            let executes = |actions: &[Action]| actions.iter().any(|action| matches!(action, Action::Execute { .. }));
            assert!(!executes(&actions), "{repeat}: it runs without anybody's word");
            let asked = actions.iter().any(
                |action| matches!(action, Action::RequestApproval(request) if request.question == Question::RunAgain),
            );
            assert_eq!((asked, machine.phase()), (asks, RunLifecyclePhase::Paused), "{repeat}");
            // Neither a restart nor a look at the state changes anything before somebody resumes it.
            assert!(!machine.is_interrupted_by_restore() && !machine.is_interrupted_by_restart());
            let actions = machine.step(resume(), AT).unwrap();
            assert_eq!(executes(&actions), !asks, "{repeat}");
            let waits = machine.phase() == RunLifecyclePhase::WaitingForApproval;
            assert_eq!(waits, asks, "{repeat}");
        }
    }
}

#[test]
fn a_restored_run_asks_for_decisions_and_models_only_when_it_is_resumed() {
    let resume = || Input::Resume { by: "ada".into(), over_budget: None, model: None };
    let mut proposed = started();
    proposed.step(turn(1, 1, "", &["w"]), AT).unwrap();
    for (mut machine, begins) in [(started(), "call_model"), (proposed, "decide")] {
        let held = machine.step(Input::Restored, AT).unwrap();
        assert!(matches!(held.as_slice(), [Action::Status(change)] if change.detail.is_some()), "{held:?}");
        let begun = serde_json::to_string(&machine.step(resume(), AT).unwrap()).unwrap();
        assert!(begun.contains(begins), "{begun}");
    }
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
