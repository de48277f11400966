//! What holds for every sequence of inputs, however senseless.

use palyra_common::ToolVerdict;
use palyra_tools::{Concurrency, Repeatability};
use proptest::prelude::{Just, Strategy, any, proptest};
use proptest::{prop_assert, prop_assert_eq, prop_oneof};

use super::tests::{decided, finished, spec, turn};
use super::*;

/// An input that may or may not fit: half of the calls and approvals it names exist.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
enum Move {
    Raw(Input),
    /// Answers the n-th open approval, if there is one.
    Answer(usize, ApprovalDecision),
    /// Whatever time makes due.
    Time(u64),
}

fn inputs() -> impl Strategy<Value = Move> {
    let call = (1_u32..4, 1_u32..4).prop_map(|(turn, call)| format!("t{turn}c{call}"));
    let verdict = (0..ToolVerdict::ALL.len()).prop_map(|index| ToolVerdict::ALL[index]);
    let decision = (0..ApprovalDecision::ALL.len()).prop_map(|index| ApprovalDecision::ALL[index]);
    let shared = any::<bool>().prop_map(|is| if is { Concurrency::Shared } else { Concurrency::Exclusive });
    let repeat = any::<bool>().prop_map(|is| if is { Repeatability::Repeatable } else { Repeatability::NonRepeatable });
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
        1 => (0_u64..40_000_000).prop_map(Move::Time),
        1 => Just(Move::Raw(Input::Recovered)),
        1 => Just(Move::Raw(Input::Tick)),
        1 => Just(Move::Raw(Input::Pause { by: "p".into() })),
        1 => Just(Move::Raw(Input::Resume { by: "p".into(), over_budget: None })),
        1 => Just(Move::Raw(Input::Resume { by: "p".into(), over_budget: Some(palyra_budget::MicroUsd(7)) })),
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
        1 => (0_u32..4).prop_map(|replaces| Move::Raw(Input::Compacted {
            replaces, summary: "s".into(), method: "model".into(), account: None,
        })),
        1 => Just(Move::Raw(Input::Cancel { by: "p".into(), reason: None })),
        1 => Just(Move::Raw(Input::Accepted(Box::new(spec())))),
    ]
}

fn open_approvals(machine: &Machine) -> Vec<palyra_common::ApprovalId> {
    if let Phase::AskingForMoney(question) = machine.state() {
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
    fn no_sequence_of_inputs_breaks_the_machine(moves in proptest::collection::vec(inputs(), 0..60), window in 60_u32..3_000) {
        let mut spec = spec();
        spec.client_tools = vec![crate::spec::ClientTool {
            name: "c".into(), description: String::new(), input_schema: serde_json::json!({}),
        }];
        spec.model.context_tokens = window;
        spec.limits.approval_timeout_ms = 5_000_000;
        let mut at = Timestamp(0);
        let mut machine = Machine::accept(spec.clone(), at);
        let mut tape: Vec<(Input, Timestamp, Vec<Action>)> = Vec::new();
        let mut executing: Vec<String> = Vec::new();
        for step in moves {
            let wanted = match step {
                Move::Raw(input) => vec![input],
                Move::Answer(index, decision) => open_approvals(&machine).get(index).map(|approval_id| {
                    Input::ApprovalDecided { approval_id: *approval_id, decision, scope: ApprovalScope::Once, until: None, by: "p".into(), via: None }
                }).into_iter().collect(),
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
                        let taken_up = before.may_be_taken_up() && matches!(input, Input::Resume { .. });
                        prop_assert!(!before.is_over() || taken_up, "a run that is over takes no input");
                        if machine.is_over() {
                            let news = actions.iter().filter(|action| matches!(action, Action::Status(_))).count();
                            prop_assert_eq!(news, 1, "the end is told once");
                            prop_assert!(!actions.iter().any(|action| matches!(
                                action, Action::Execute { .. } | Action::CallModel { .. } | Action::Compact { .. }
                            )), "a run that is over begins nothing");
                        }
                        if let Input::ToolFinished { call_id, .. } = &input {
                            executing.retain(|id| id != call_id);
                        }
                        if matches!(input, Input::Recovered) {
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
