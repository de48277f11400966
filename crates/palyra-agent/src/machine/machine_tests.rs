//! The machine by examples: whole runs, fed by hand.

use palyra_common::{
    Digest, Label, LimitsUsed, Risk, RunId, SessionId, TerminationReason, ToolAttestation, ToolVerdict,
};
use palyra_models::{StopReason, ToolCallRequest, Usage};
use palyra_tools::{Concurrency, Repeatability};

use super::*;
use crate::spec::{ModelChoice, RunLimits};

pub(super) fn spec() -> RunSpec {
    RunSpec {
        run_id: RunId::from_u128(7),
        session_id: SessionId::from_u128(8),
        machine_version: crate::spec::MACHINE_VERSION,
        owner: "local".into(),
        agent: "main".into(),
        profile: None,
        mode: palyra_common::RunMode::Guarded,
        frame_seed: Digest::of(b"seed"),
        from: None,
        prompt: "do it".into(),
        attachments: vec![],
        workspace: "/w".into(),
        started_with: Default::default(),
        system: "be good".into(),
        project: vec![],
        surroundings: None,
        history: vec![],
        history_omitted: 0,
        tools: crate::spec::ToolSelection::All,
        client_tools: Vec::new(),
        objective: None,
        limits: RunLimits { max_turns: 5, max_tool_calls: 10, loop_repeats: 3, ..RunLimits::default() },
        model: ModelChoice { provider: "scripted".into(), name: "s".into(), context_tokens: 10_000 },
        reserved_tokens: 0,
        idempotency: None,
    }
}

pub(super) fn turn(turn: u32, attempt: u32, text: &str, tools: &[&str]) -> Input {
    Input::ModelTurnFinished(ModelTurn {
        turn,
        attempt,
        text: text.into(),
        tool_calls: tools
            .iter()
            .map(|name| ToolCallRequest { id: "x".into(), name: (*name).into(), arguments: "{}".into() })
            .collect(),
        usage: Usage::default(),
        stop_reason: StopReason::EndTurn,
        duration_ms: 1,
        reasoning: Vec::new(),
        answering: None,
        attempts: Vec::new(),
        repairs: Vec::new(),
        cost: Cost::default(),
    })
}

pub(super) fn decided(call_id: &str, verdict: ToolVerdict, concurrency: Concurrency, repeat: Repeatability) -> Input {
    Input::Decided(Box::new(Decided {
        call_id: call_id.into(),
        verdict,
        reasons: vec!["because".into()],
        told: Vec::new(),
        policies: vec![],
        requests: Vec::new(),
        facts: CallFacts {
            containment: palyra_policy::Containment::Reaching,
            concurrency,
            repeatability: repeat,
            risk: Risk::Low,
            summary: "s".into(),
            resource: "r".into(),
            destination: None,
            confirmed_first: false,
            evidence: Vec::new(),
            offer: None,
            source: palyra_flow::SourceNaming::ChosenOtherwise,
            mandate: None,
            seen: Label::system(),
        },
        invalid: None,
    }))
}

pub(super) fn finished(call_id: &str, content: &str) -> Input {
    Input::ToolFinished {
        call_id: call_id.into(),
        tool: "t".into(),
        result: Box::new(CallResult {
            duration_ms: 1,
            ..CallResult::of_text(
                content.into(),
                Label::system(),
                ToolAttestation {
                    call_id: call_id.into(),
                    execution_sha256: Digest::of(b""),
                    executor: "builtin".into(),
                    tier: None,
                    fallback_reasons: Vec::new(),
                    limits_used: LimitsUsed::default(),
                    timed_out: false,
                },
            )
        }),
    }
}

pub(super) const AT: Timestamp = Timestamp(1_000);

pub(super) fn started() -> Machine {
    let mut machine = Machine::accept(spec(), AT);
    let actions = machine.step(Input::Started, AT).unwrap();
    assert!(matches!(actions[..], [Action::CallModel { turn: 1, attempt: 1, .. }]));
    machine
}

fn executing(actions: &[Action]) -> Vec<&str> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Execute { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
        .collect()
}

fn ending(machine: &Machine) -> (RunLifecyclePhase, TerminationReason, String) {
    match machine.state() {
        Phase::Completed(end) | Phase::Failed(end) | Phase::Aborted(end) | Phase::Expired(end) => {
            (machine.phase(), end.reason, end.detail.clone().map(|detail| detail.code).unwrap_or_default())
        }
        other => panic!("not over: {other:?}"),
    }
}

#[test]
fn a_call_of_the_clients_tool_waits_for_the_client_and_not_for_time() {
    use Concurrency::{Exclusive, Shared};
    let mut spec = spec();
    spec.client_tools = vec![crate::spec::ClientTool {
        name: "ask".into(),
        description: String::new(),
        input_schema: serde_json::json!({}).into(),
    }];
    spec.limits.wall_clock_ms = 10_000;
    let mut machine = Machine::accept(spec, AT);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["client.ask", "w", "client.other"]), AT).unwrap();
    let handed = machine.step(decided("t1c1", ToolVerdict::Permit, Shared, Repeatability::Repeatable), AT).unwrap();
    assert!(matches!(&handed[..], [Action::HandBack { tool, .. }] if tool == "ask"), "{handed:?}");
    let own = machine.step(decided("t1c2", ToolVerdict::Permit, Exclusive, Repeatability::NonRepeatable), AT).unwrap();
    assert_eq!(executing(&own), ["t1c2"], "our own call does not wait for the client");
    machine.step(decided("t1c3", ToolVerdict::Deny, Shared, Repeatability::Repeatable), AT).unwrap();
    let paused = machine.step(finished("t1c2", "ok"), AT).unwrap();
    let code = |change: &StatusChange| change.detail.clone().map(|detail| detail.code).unwrap_or_default();
    assert!(
        paused.iter().any(|action| matches!(action, Action::Status(change) if code(change) == CLIENT_TOOLS_PENDING))
    );
    let days = AT.plus(Duration::from_secs(3 * 24 * 3600));
    assert!(machine.due(days).is_empty(), "waiting is no work");
    assert!(machine.step(Input::Recovered, days).unwrap().is_empty(), "a restart changes nothing");
    assert!(machine.step(Input::Resume { by: "p".into(), over_budget: None, model: None }, days).is_err());
    let goes_on = machine.step(finished("t1c1", "answer"), days).unwrap();
    assert!(goes_on.iter().any(|action| matches!(action, Action::CallModel { turn: 2, .. })), "{goes_on:?}");
    assert!(machine.step(finished("t1c1", "again"), days).is_err());
}

#[test]
fn a_specification_from_before_clients_had_tools_still_reads() {
    let mut spec = spec();
    spec.history = vec![crate::spec::Exchange {
        run_id: Some(RunId::from_u128(1)),
        prompt: "p".into(),
        prompt_label: None,
        answer: "a".into(),
        label: Label::user(),
    }];
    let text = serde_json::to_string(&spec).unwrap();
    assert!(!text.contains("client_tools"), "nothing is written for nothing: {text}");
    let older = text.replace("\"owner\":\"local\",", "");
    assert_ne!(older, text);
    assert_eq!(serde_json::from_str::<RunSpec>(&older).unwrap(), spec);
}

#[test]
fn an_answer_completes_the_run() {
    let mut machine = started();
    let actions = machine.step(turn(1, 1, "done", &[]), AT).unwrap();
    assert!(matches!(&actions[..], [Action::Status(change)] if change.answer.as_deref() == Some("done")));
    assert_eq!(ending(&machine), (RunLifecyclePhase::Completed, TerminationReason::FinalAnswer, String::new()));
    assert!(machine.step(Input::Started, AT).is_err());
}

#[test]
fn reads_run_together_and_writes_alone_in_the_models_order() {
    use Concurrency::{Exclusive, Shared};
    let mut machine = started();
    machine.step(turn(1, 1, "", &["a", "b", "w", "c"]), AT).unwrap();
    let permit = |id: &str, how| decided(id, ToolVerdict::Permit, how, Repeatability::Repeatable);
    assert_eq!(executing(&machine.step(permit("t1c1", Shared), AT).unwrap()), ["t1c1"]);
    assert_eq!(executing(&machine.step(permit("t1c2", Shared), AT).unwrap()), ["t1c2"]);
    assert!(executing(&machine.step(permit("t1c3", Exclusive), AT).unwrap()).is_empty());
    assert!(executing(&machine.step(permit("t1c4", Shared), AT).unwrap()).is_empty());
    assert!(executing(&machine.step(finished("t1c2", "2"), AT).unwrap()).is_empty());
    assert_eq!(executing(&machine.step(finished("t1c1", "1"), AT).unwrap()), ["t1c3"]);
    assert_eq!(executing(&machine.step(finished("t1c3", "3"), AT).unwrap()), ["t1c4"]);
    let actions = machine.step(finished("t1c4", "4"), AT).unwrap();
    assert!(matches!(actions.last(), Some(Action::CallModel { turn: 2, .. })));
    let order: Vec<_> = machine
        .items()
        .iter()
        .filter_map(|item| match item {
            Item::ToolResult { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["1", "2", "3", "4"]);
}

#[test]
fn a_denied_or_malformed_call_is_told_to_the_model() {
    let mut machine = started();
    let mut input = turn(1, 1, "", &["a", "b"]);
    if let Input::ModelTurnFinished(turn) = &mut input {
        turn.tool_calls[1].arguments = "{oops".into();
    }
    machine.step(input, AT).unwrap();
    let actions =
        machine.step(decided("t1c1", ToolVerdict::Deny, Concurrency::Shared, Repeatability::Repeatable), AT).unwrap();
    assert!(matches!(actions[..], [Action::NotRun { .. }, Action::CallModel { turn: 2, .. }]));
    let failed: Vec<_> = machine
        .items()
        .iter()
        .filter_map(|item| match item {
            Item::ToolResult { content, failed: true, .. } => Some(content.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(failed[0], "denied: because");
    assert!(failed[1].starts_with("the arguments are not valid JSON"));
}

fn asked(machine: &mut Machine, turn_no: u32) -> palyra_common::ApprovalId {
    machine.step(turn(turn_no, 1, "", &["a"]), AT).unwrap();
    let id = format!("t{turn_no}c1");
    let actions = machine
        .step(decided(&id, ToolVerdict::NeedsApproval, Concurrency::Exclusive, Repeatability::NonRepeatable), AT)
        .unwrap();
    assert_eq!(machine.phase(), RunLifecyclePhase::WaitingForApproval);
    match &actions[0] {
        Action::RequestApproval(request) => request.approval_id,
        other => panic!("{other:?}"),
    }
}

fn answered(approval_id: palyra_common::ApprovalId, decision: ApprovalDecision) -> Input {
    Input::ApprovalDecided {
        approval_id,
        decision,
        scope: ApprovalScope::Once,
        until: None,
        by: "me".into(),
        via: None,
        reason: None,
    }
}

#[test]
fn an_approval_lets_the_call_run_and_the_same_refusal_twice_ends_the_run() {
    let mut machine = started();
    let approval = asked(&mut machine, 1);
    assert_eq!(executing(&machine.step(answered(approval, ApprovalDecision::Allow), AT).unwrap()), ["t1c1"]);
    assert!(machine.step(answered(approval, ApprovalDecision::Allow), AT).is_err(), "an answer counts once");
    machine.step(finished("t1c1", "ok"), AT).unwrap();
    let second = asked(&mut machine, 2);
    machine.step(answered(second, ApprovalDecision::Deny), AT).unwrap();
    assert_eq!(machine.phase(), RunLifecyclePhase::Running);
    let third = asked(&mut machine, 3);
    machine.step(answered(third, ApprovalDecision::Deny), AT).unwrap();
    assert_eq!(
        ending(&machine),
        (RunLifecyclePhase::Aborted, TerminationReason::ApprovalDenied, "approval_denied".into())
    );
}

#[test]
fn waiting_for_a_person_costs_no_working_time() {
    let mut machine = started();
    let approval = asked(&mut machine, 1);
    let much_later = AT.plus(Duration::from_secs(3 * 3600));
    machine.step(answered(approval, ApprovalDecision::Allow), much_later).unwrap();
    assert!(machine.due(much_later).is_empty());
    let deadline = machine.next_deadline().unwrap();
    assert_eq!(deadline, much_later.plus(Duration::from_secs(15 * 60)));
    let actions = machine.step(Input::Tick, deadline).unwrap();
    assert!(matches!(&actions[..], [Action::StopTool { .. }]), "the call under way is asked to stop first");
    machine.step(finished("t1c1", "stopped"), deadline).unwrap();
    assert_eq!(ending(&machine).1, TerminationReason::WallClock);
}

#[test]
fn cancelling_waits_for_the_outcome_of_what_is_under_way() {
    let mut machine = started();
    machine.step(turn(1, 1, "", &["a"]), AT).unwrap();
    machine.step(decided("t1c1", ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable), AT).unwrap();
    let cancel = Input::Cancel { by: "me".into(), reason: None };
    let actions = machine.step(cancel.clone(), AT).unwrap();
    assert!(matches!(&actions[..], [Action::StopTool { .. }]));
    assert!(machine.step(cancel, AT).is_err());
    machine.step(finished("t1c1", "stopped"), AT).unwrap();
    assert_eq!(ending(&machine), (RunLifecyclePhase::Aborted, TerminationReason::Cancellation, "cancelled".into()));
}

#[test]
fn after_a_restart_repeatable_calls_begin_again_and_others_become_a_question() {
    let mut machine = started();
    machine.step(turn(1, 1, "", &["a"]), AT).unwrap();
    let first = machine
        .step(decided("t1c1", ToolVerdict::Permit, Concurrency::Exclusive, Repeatability::Repeatable), AT)
        .unwrap();
    assert_eq!(machine.step(Input::Recovered, AT).unwrap(), first, "the same effect id again");
    machine.step(finished("t1c1", "ok"), AT).unwrap();
    machine.step(turn(2, 1, "", &["a"]), AT).unwrap();
    machine
        .step(decided("t2c1", ToolVerdict::Permit, Concurrency::Exclusive, Repeatability::NonRepeatable), AT)
        .unwrap();
    let actions = machine.step(Input::Recovered, AT).unwrap();
    let Action::RequestApproval(request) = &actions[0] else { panic!("{actions:?}") };
    assert_eq!(request.question, Question::RunAgain);
    let again = machine.step(answered(request.approval_id, ApprovalDecision::Allow), AT).unwrap();
    assert_eq!(executing(&again), ["t2c1"]);
    assert_ne!(again, first, "a new attempt is a new effect");
}

#[test]
fn turns_in_which_nothing_works_end_the_run() {
    let mut machine = started();
    machine.spec.limits.max_turns = 100;
    machine.spec.limits.max_tool_calls = 100;
    for turn_no in 1..=6 {
        assert!(!machine.is_over(), "turn {turn_no}");
        let id = format!("t{turn_no}c1");
        machine.step(turn(turn_no, 1, "", &["a"]), AT).unwrap();
        machine.step(decided(&id, ToolVerdict::Deny, Concurrency::Shared, Repeatability::Repeatable), AT).unwrap();
    }
    assert_eq!(ending(&machine), (RunLifecyclePhase::Failed, TerminationReason::MaxToolCalls, "loop_detected".into()));
}

#[test]
fn going_round_in_circles_ends_the_run() {
    let mut machine = started();
    for turn_no in 1..=3 {
        machine.step(turn(turn_no, 1, "", &["a"]), AT).unwrap();
        let id = format!("t{turn_no}c1");
        machine.step(decided(&id, ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable), AT).unwrap();
        machine.step(finished(&id, "same"), AT).unwrap();
    }
    assert_eq!(ending(&machine), (RunLifecyclePhase::Failed, TerminationReason::MaxToolCalls, "loop_detected".into()));
}

#[test]
fn limits_on_turns_and_calls_end_the_run() {
    let mut machine = started();
    for turn_no in 1..=5 {
        machine.step(turn(turn_no, 1, "", &["a"]), AT).unwrap();
        let id = format!("t{turn_no}c1");
        machine.step(decided(&id, ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable), AT).unwrap();
        machine.step(finished(&id, &format!("{turn_no}")), AT).unwrap();
    }
    assert_eq!(ending(&machine).1, TerminationReason::MaxTurns);
    let mut machine = started();
    machine.step(turn(1, 1, "", &["a"; 11]), AT).unwrap();
    assert_eq!(ending(&machine).2, "max_tool_calls");
}

#[test]
fn an_interrupt_stops_the_model_and_a_follow_up_waits_for_the_turn() {
    let say = |mode| Input::UserMessage { text: "rather this".into(), mode };
    let mut machine = started();
    let actions = machine.step(say(palyra_common::InputMode::Interrupt), AT).unwrap();
    assert!(matches!(actions[..], [Action::StopModel { turn: 1 }, Action::CallModel { turn: 2, .. }]));
    assert!(machine.step(turn(1, 1, "too late", &[]), AT).is_err());
    assert!(machine.step(say(palyra_common::InputMode::FollowUp), AT).unwrap().is_empty());
    let actions = machine.step(turn(2, 1, "first answer", &[]), AT).unwrap();
    assert!(matches!(actions[..], [Action::CallModel { turn: 3, .. }]), "an answer does not end a run with mail");
    machine.step(turn(3, 1, "second answer", &[]), AT).unwrap();
    assert_eq!(machine.phase(), RunLifecyclePhase::Completed);
}

#[test]
fn a_held_run_begins_nothing_and_goes_on_where_it_was() {
    let mut machine = started();
    let by = || "me".to_owned();
    let actions = machine.step(Input::Pause { by: by() }, AT).unwrap();
    assert!(matches!(actions[..], [Action::StopModel { .. }, Action::Status(_)]));
    assert!(machine.step(turn(1, 1, "x", &[]), AT).is_err());
    let actions = machine.step(Input::Resume { by: by(), over_budget: None, model: None }, AT).unwrap();
    assert!(matches!(actions[..], [Action::Status(_), Action::CallModel { turn: 1, attempt: 2, .. }]));
}

#[test]
fn a_full_window_is_summarised_and_a_hopeless_one_ends_the_run() {
    let mut small = spec();
    small.model.context_tokens = 400;
    let mut machine = Machine::accept(small.clone(), AT);
    machine.step(Input::Started, AT).unwrap();
    let mut compacted = false;
    for turn_no in 1..=4 {
        machine.step(turn(turn_no, 1, "", &["a"]), AT).unwrap();
        let id = format!("t{turn_no}c1");
        machine.step(decided(&id, ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable), AT).unwrap();
        let actions = machine.step(finished(&id, &format!("{turn_no} {}", "x".repeat(350))), AT).unwrap();
        if let Some(Action::Compact { replaces, .. }) = actions.last() {
            compacted = true;
            let summary = Input::Compacted {
                replaces: *replaces,
                summary: "short".into(),
                method: "model".into(),
                account: None,
            };
            let actions = machine.step(summary, AT).unwrap();
            assert!(matches!(actions[..], [Action::CallModel { .. }]));
            assert!(matches!(&machine.items()[1], Item::Summary { text, .. } if text == "short"));
        }
    }
    assert!(compacted);
    small.prompt = "y".repeat(4_000);
    let mut machine = Machine::accept(small, AT);
    machine.step(Input::Started, AT).unwrap();
    assert_eq!(ending(&machine).1, TerminationReason::ContextBudgetExhausted);
}

#[test]
fn a_failing_provider_is_tried_again_and_then_ends_the_run() {
    let fail = |attempt| {
        Input::ModelFailed(ModelFailure {
            turn: 1,
            attempt,
            error: palyra_common::StableErrorEnvelope::new(
                "model_network",
                palyra_common::ErrorCategory::Dependency,
                "gone",
            ),
            remedy: Remedy::Retry,
            answering: None,
            attempts: Vec::new(),
            usage: palyra_models::Usage::default(),
            cost: Cost::default(),
        })
    };
    let mut machine = started();
    assert!(matches!(machine.step(fail(1), AT).unwrap()[..], [Action::CallModel { attempt: 2, delay_ms: 250, .. }]));
    assert!(machine.step(fail(1), AT).is_err(), "an old attempt has no say");
    assert!(matches!(machine.step(fail(2), AT).unwrap()[..], [Action::CallModel { attempt: 3, .. }]));
    machine.step(fail(3), AT).unwrap();
    assert_eq!(ending(&machine), (RunLifecyclePhase::Failed, TerminationReason::ProviderError, "model_network".into()));
}

#[test]
fn idle_runs_expire() {
    let mut machine = Machine::accept(spec(), AT);
    let deadline = machine.next_deadline().unwrap();
    assert!(machine.step(Input::Tick, Timestamp(deadline.0 - 1)).is_err());
    machine.step(Input::Tick, deadline).unwrap();
    assert_eq!(ending(&machine), (RunLifecyclePhase::Expired, TerminationReason::WallClock, "run_expired".into()));
}
