//! What holds for every sequence of inputs, however senseless.

use palyra_common::{HookDecision, HookEvent, Label, RunLifecycleHookPhase, ToolVerdict};
use palyra_tools::{Concurrency, Repeatability};
use proptest::prelude::{Just, Strategy, any, proptest};
use proptest::{prop_assert, prop_assert_eq, prop_oneof};

use super::tests::{decided, finished, spec, turn};
use super::*;
use crate::hooks::{HookAnswer, HookFailure, HookFailureMode, HookResult, HookSaid, HooksAnswered};

/// An input that may or may not fit: half of the calls and approvals it names exist.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
enum Move {
    Raw(Input),
    /// Answers the n-th open approval, if there is one.
    Answer(usize, ApprovalDecision),
    /// Hooks of the n-th occurrence that is open say this, one after the other.
    Hooks(usize, Vec<HookSaid>),
    /// Whatever time makes due.
    Time(u64),
}

/// Bindings for phases in any combination, some of them for one tool only.
fn bindings() -> impl Strategy<Value = Vec<HookBindingRecord>> {
    let phases = proptest::collection::vec((0..RunLifecycleHookPhase::ALL.len(), -1..2, any::<bool>()), 0..6);
    phases.prop_map(|chosen| {
        let bind = |(number, (phase, order, narrow)): (usize, (usize, i32, bool))| {
            let phase = RunLifecycleHookPhase::ALL[phase];
            let event: HookEvent = format!("run:{phase}").parse().unwrap();
            let mut binding = HookBindingRecord::new(format!("h{number}"), event, "p");
            binding.order = order;
            let about_tools = matches!(phase, RunLifecycleHookPhase::BeforeTool | RunLifecycleHookPhase::AfterTool);
            binding.tools = if narrow && about_tools { vec!["client.*".into()] } else { Vec::new() };
            binding
        };
        chosen.into_iter().enumerate().map(bind).collect()
    })
}

fn said() -> impl Strategy<Value = HookSaid> {
    let answer = (0..HookDecision::ALL.len(), any::<bool>()).prop_map(|(decision, text)| {
        HookSaid::Answered(HookAnswer {
            decision: HookDecision::ALL[decision],
            reason: "because".into(),
            text: text.then(|| "other".to_owned()),
        })
    });
    prop_oneof![4 => answer, 1 => Just(HookSaid::Failed(HookFailure::TimedOut))]
}

/// Occurrences whose hooks have not answered, and who is asked.
fn open_occurrences(machine: &Machine) -> Vec<(String, RunLifecycleHookPhase, Option<String>, Vec<String>)> {
    if let Phase::Running(Activity::Hooks(wait)) | Phase::Paused(Activity::Hooks(wait)) = machine.state() {
        let phase = match wait.step {
            HookStep::BeforeRun => RunLifecycleHookPhase::BeforeRun,
            HookStep::BeforeDelivery(_) => RunLifecycleHookPhase::BeforeDelivery,
        };
        let open = (wait.occurrence_id.clone(), phase, None, wait.hooks.clone());
        return wait.answered.is_none().then_some(open).into_iter().collect();
    }
    let calls = machine.round().map(|round| round.calls.clone()).unwrap_or_default();
    calls
        .into_iter()
        .filter_map(|call| match call.state {
            CallState::Screening(screening) => {
                Some((screening.occurrence_id, RunLifecycleHookPhase::BeforeTool, Some(call.call_id), screening.hooks))
            }
            CallState::Reviewing(reviewing) => {
                Some((reviewing.occurrence_id, RunLifecycleHookPhase::AfterTool, Some(call.call_id), reviewing.hooks))
            }
            _ => None,
        })
        .collect()
}

fn answering(machine: &Machine, index: usize, said: &[HookSaid]) -> Option<Input> {
    let (occurrence_id, phase, call_id, hooks) = open_occurrences(machine).into_iter().nth(index)?;
    let result = |(hook, said): (String, &HookSaid)| HookResult {
        hook,
        plugin: "p".into(),
        on_failure: HookFailureMode::FailClosed,
        said: said.clone(),
        duration_ms: 1,
    };
    let results = hooks.into_iter().zip(said).map(result).collect();
    let label = Label::system();
    Some(Input::HooksAnswered(Box::new(HooksAnswered { occurrence_id, phase, call_id, results, label })))
}

fn inputs() -> impl Strategy<Value = Move> {
    let call = (1_u32..4, 1_u32..4).prop_map(|(turn, call)| format!("t{turn}c{call}"));
    let verdict = (0..ToolVerdict::ALL.len()).prop_map(|index| ToolVerdict::ALL[index]);
    let decision = (0..ApprovalDecision::ALL.len()).prop_map(|index| ApprovalDecision::ALL[index]);
    let shared = any::<bool>().prop_map(|is| if is { Concurrency::Shared } else { Concurrency::Exclusive });
    let repeat = proptest::sample::select(vec![
        Repeatability::Repeatable,
        Repeatability::UntilBegun,
        Repeatability::NonRepeatable,
    ]);
    let tools = proptest::collection::vec(prop_oneof![3 => Just("t"), 1 => Just("client.c")], 0..3);
    prop_oneof![
        2 => Just(Move::Raw(Input::Started)),
        4 => (1_u32..5, 1_u32..4, "[a-z]{0,3}", tools).prop_map(|(no, attempt, text, tools)| {
            Move::Raw(turn(no, attempt, &text, &tools))
        }),
        6 => (call.clone(), verdict, shared, repeat).prop_map(|(id, verdict, shared, repeat)| {
            Move::Raw(decided(&id, verdict, shared, repeat))
        }),
        5 => (call, "[ab]").prop_map(|(id, content)| Move::Raw(finished(&id, &content))),
        3 => (0_usize..3, decision).prop_map(|(index, decision)| Move::Answer(index, decision)),
        6 => (0_usize..2, proptest::collection::vec(said(), 1..6)).prop_map(|(index, said)| Move::Hooks(index, said)),
        2 => bindings().prop_map(|bindings| Move::Raw(Input::HooksBound { bindings })),
        1 => (0_u64..40_000_000).prop_map(Move::Time),
        1 => Just(Move::Raw(Input::Recovered)),
        1 => Just(Move::Raw(Input::Restored)),
        1 => Just(Move::Raw(Input::Tick)),
        1 => Just(Move::Raw(Input::Pause { by: "p".into() })),
        1 => Just(Move::Raw(Input::Resume { by: "p".into(), over_budget: None, model: None })),
        1 => Just(Move::Raw(Input::Resume { by: "p".into(), over_budget: Some(palyra_budget::MicroUsd(7)), model: None })),
        2 => (1_u32..5, 1_u32..4).prop_map(|(turn, attempt)| Move::Raw(Input::BudgetRefused {
            turn,
            attempt,
            error: Box::new(palyra_common::StableErrorEnvelope::new(
                "budget_exceeded",
                palyra_common::ErrorCategory::Policy,
                "no money",
            )),
            cost: Cost::default(),
        })),
        1 => any::<bool>().prop_map(|now| Move::Raw(Input::UserMessage {
            text: "m".into(),
            mode: if now { palyra_common::InputMode::Interrupt } else { palyra_common::InputMode::FollowUp },
        })),
        2 => (1_usize..4).prop_map(|count| Move::Raw(Input::CompactionReverted {
            by: "p".into(),
            originals: vec![crate::context::Item::User { text: "o".into(), attachments: vec![], label: Label::user() }; count],
        })),
        1 => (0_u32..4).prop_map(|replaces| Move::Raw(Input::Compacted {
            replaces, summary: "s".into(), method: "model".into(), account: None,
        })),
        4 => (1_u32..5, 0_usize..4).prop_map(|(judgement, found)| Move::Raw(judged(judgement, found))),
        1 => Just(Move::Raw(Input::Cancel { by: "p".into(), reason: None })),
        1 => Just(Move::Raw(Input::Accepted(Box::new(spec())))),
    ]
}

/// A verdict, or none.
fn judged(judgement: u32, found: usize) -> Input {
    use crate::auxiliary::{Judgement, Verdict};
    let verdict = |verdict| {
        Found::Verdict(Judgement { verdict, confidence: 0.5, grounds: "because".into(), missing: vec!["more".into()] })
    };
    let failed =
        palyra_common::StableErrorEnvelope::new("internal", palyra_common::ErrorCategory::Internal, "no judge");
    let found = Verdict::ALL.get(found).map_or(Found::Failed(failed), |one| verdict(*one));
    Input::Judged(Box::new(Judged { judgement, task_id: palyra_common::AuxiliaryTaskId::from_u128(1), found }))
}

/// Verdicts that were asked for on the tape and neither given nor given up; a restart gives all up.
fn verdicts_under_way(tape: &[(Input, Timestamp, Vec<Action>)], input: &Input, actions: &[Action]) -> Option<u32> {
    let mut open = None;
    let steps = tape.iter().map(|(input, _, actions)| (input, actions.as_slice())).chain([(input, actions)]);
    for (input, actions) in steps {
        if matches!(input, Input::Judged(_) | Input::Recovered | Input::Restored) {
            open = None;
        }
        for action in actions {
            match action {
                Action::Judge { judgement } => open = Some(*judgement),
                Action::StopJudge { judgement } if open == Some(*judgement) => open = None,
                _ => {}
            }
        }
    }
    open
}

/// Occurrences that were asked about on the tape and neither answered nor given up; a restart gives all up.
fn hooks_under_way(
    tape: &[(Input, Timestamp, Vec<Action>)],
    input: &Input,
    actions: &[Action],
) -> std::collections::BTreeSet<String> {
    let mut open = std::collections::BTreeSet::new();
    let steps = tape.iter().map(|(input, _, actions)| (input, actions.as_slice())).chain([(input, actions)]);
    for (input, actions) in steps {
        match input {
            Input::HooksAnswered(answered) => {
                open.remove(&answered.occurrence_id);
            }
            Input::Recovered | Input::Restored => open.clear(),
            _ => {}
        }
        for action in actions {
            match action {
                Action::RunHooks { occurrence_id, phase, .. } if *phase != RunLifecycleHookPhase::AfterRun => {
                    open.insert(occurrence_id.clone());
                }
                Action::StopHooks { occurrence_id } => {
                    open.remove(occurrence_id);
                }
                _ => {}
            }
        }
    }
    open
}

/// Whether carrying this out does something that a backup could not know of. What follows the end of a run is told to hooks also when it ends by this.
fn begins_something(action: &Action) -> bool {
    match action {
        Action::RunHooks { phase, .. } => *phase != RunLifecycleHookPhase::AfterRun,
        Action::CallModel { .. }
        | Action::Decide { .. }
        | Action::Execute { .. }
        | Action::HandBack { .. }
        | Action::GrantBudget { .. }
        | Action::Compact { .. }
        | Action::Judge { .. } => true,
        _ => false,
    }
}

fn open_approvals(machine: &Machine) -> Vec<palyra_common::ApprovalId> {
    if let Phase::AskingForMoney(question) = machine.state() {
        return vec![question.approval_id];
    }
    if let Phase::AskingForHook(question) = machine.state() {
        return vec![question.approval_id];
    }
    let calls = machine.round().map(|round| round.calls.clone()).unwrap_or_default();
    calls
        .iter()
        .filter_map(|call| match call.state {
            CallState::AwaitingApproval { approval_id, .. } => Some(approval_id),
            _ => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 2_000, ..Default::default() })]

    #[test]
    fn no_sequence_of_inputs_breaks_the_machine(moves in proptest::collection::vec(inputs(), 0..60), window in 60_u32..3_000, attempts in 0_u32..4) {
        let mut spec = spec();
        spec.objective = (attempts > 0).then(|| crate::spec::Objective { text: "all".into(), max_attempts: attempts });
        spec.client_tools = vec![crate::spec::ClientTool {
            name: "c".into(), description: String::new(), input_schema: serde_json::json!({}).into(),
        }];
        spec.model.context_tokens = window;
        spec.limits.approval_timeout_ms = 5_000_000;
        let mut at = Timestamp(0);
        let mut machine = Machine::accept(spec.clone(), at);
        let mut tape: Vec<(Input, Timestamp, Vec<Action>)> = Vec::new();
        let mut executing: Vec<String> = Vec::new();
        // Calls whose hooks were asked and have not answered, and calls that a hook refused.
        let mut screening: Vec<String> = Vec::new();
        let mut refused: Vec<String> = Vec::new();
        for step in moves {
            let wanted = match step {
                Move::Raw(input) => vec![input],
                Move::Answer(index, decision) => open_approvals(&machine).get(index).map(|approval_id| {
                    Input::ApprovalDecided { approval_id: *approval_id, decision, scope: ApprovalScope::Once, until: None, by: "p".into(), via: None, reason: None }
                }).into_iter().collect(),
                Move::Hooks(index, said) => answering(&machine, index, &said).into_iter().collect(),
                Move::Time(millis) => {
                    at = at.plus(Duration::from_millis(millis));
                    machine.due(at)
                }
            };
            for input in wanted {
                let before = machine.clone();
                match machine.step(input.clone(), at) {
                    Err(_) => prop_assert_eq!(&machine, &before, "a rejected input changes nothing"),
                    Ok(actions) => {
                        let on_the_side = matches!(input, Input::CompactionReverted { .. });
                        let taken_up =
                            before.may_be_taken_up() && (on_the_side || matches!(input, Input::Resume { .. }));
                        prop_assert!(!before.is_over() || taken_up, "a run that is over takes no input");
                        if on_the_side {
                            prop_assert!(actions.is_empty(), "only the context is another one");
                        }
                        if machine.is_over() && !on_the_side {
                            let end = |action: &Action| matches!(action, Action::Status(change) if change.phase.is_terminal());
                            prop_assert_eq!(actions.iter().filter(|action| end(action)).count(), 1, "the end is told once");
                            prop_assert!(actions.last().is_some_and(end), "and it is the last that is told");
                            prop_assert!(!actions.iter().any(|action| matches!(
                                action, Action::Execute { .. } | Action::CallModel { .. } | Action::Compact { .. }
                            )), "a run that is over begins nothing");
                            prop_assert!(actions.iter().all(|action| !matches!(
                                action, Action::RunHooks { phase, .. } if *phase != RunLifecycleHookPhase::AfterRun
                            )), "only the end itself is told to hooks");
                            prop_assert!(open_occurrences(&machine).is_empty());
                        }
                        if matches!(input, Input::Restored) {
                            prop_assert!(actions.iter().all(|action| !begins_something(action)), "a restored run begins nothing");
                        }
                        // Once it is held by a restore, whatever it waited for is asked again only when it is resumed.
                        if !machine.restored {
                            prop_assert_eq!(
                                hooks_under_way(&tape, &input, &actions),
                                open_occurrences(&machine).into_iter().map(|(id, ..)| id).collect::<std::collections::BTreeSet<_>>(),
                                "hooks are asked exactly while something waits for them"
                            );
                            prop_assert_eq!(
                                verdicts_under_way(&tape, &input, &actions),
                                machine.awaits_verdict().filter(|wait| wait.judged.is_none()).map(|wait| wait.judgement),
                                "the judge is asked exactly while an answer waits for its verdict"
                            );
                        }
                        if let Input::HooksAnswered(answered) = &input {
                            screening.retain(|id| Some(id) != answered.call_id.as_ref());
                        }
                        if matches!(input, Input::Recovered | Input::Restored) {
                            // Those that still have hooks are asked again below.
                            screening.clear();
                        }
                        for action in &actions {
                            match action {
                                Action::RunHooks { phase: RunLifecycleHookPhase::BeforeTool, call_id: Some(id), .. } => screening.push(id.clone()),
                                Action::Execute { call_id, .. } | Action::HandBack { call_id, .. } => {
                                    prop_assert!(!screening.contains(call_id), "nothing happens while hooks look at it");
                                    prop_assert!(!refused.contains(call_id), "nothing happens that a hook refused");
                                }
                                _ => {}
                            }
                        }
                        let calls = machine.round().map(|round| round.calls.clone()).unwrap_or_default();
                        refused.extend(calls.into_iter().filter_map(|call| match call.state {
                            CallState::Done(CallOutcome::NotRun { code, .. }) if code == "hook_blocked" => Some(call.call_id),
                            _ => None,
                        }));
                        if let Input::ToolFinished { call_id, .. } = &input {
                            executing.retain(|id| id != call_id);
                        }
                        if matches!(input, Input::Recovered | Input::Restored) {
                            executing.clear();
                        }
                        for action in &actions {
                            if let Action::Execute { call_id, .. } = action {
                                prop_assert!(!executing.contains(call_id), "a call does not run twice at once");
                                executing.push(call_id.clone());
                            }
                        }
                        prop_assert!(!machine.is_over() || executing.is_empty(), "every intent has its outcome before the end");
                        tape.push((input, at, actions));
                    }
                }
            }
        }
        // Replay: the same inputs give the same actions, byte for byte, and the same state, also when it went through JSON.
        let mut again = Machine::accept(spec, Timestamp(0));
        for (input, at, actions) in tape {
            let json = serde_json::to_vec(&input).unwrap();
            let replayed = again.step(serde_json::from_slice(&json).unwrap(), at).unwrap();
            prop_assert_eq!(serde_json::to_vec(&replayed).unwrap(), serde_json::to_vec(&actions).unwrap());
        }
        prop_assert_eq!(again, machine);
    }
}
