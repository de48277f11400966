//! Hooks in the machine, by examples: one phase after the other.

use palyra_common::{HookDecision, HookEvent, Label, RunLifecycleHookPhase, RunMode, ToolVerdict};
use palyra_tools::{Concurrency, Repeatability};

use super::hooks::BLOCKED;
use super::tests::{decided, finished, spec, turn};
use super::*;
use crate::hooks::{HookAnswer, HookFailure, HookFailureMode, HookResult, HookSaid, HooksAnswered};

const AT: Timestamp = Timestamp(1_000);

pub(super) fn hook(id: &str, event: HookEvent) -> HookBindingRecord {
    HookBindingRecord::new(id, event, "plugin")
}

pub(super) fn bound(bindings: Vec<HookBindingRecord>) -> Machine {
    let mut machine = Machine::accept(spec(), AT);
    machine.step(Input::HooksBound { bindings }, AT).unwrap();
    machine
}

/// The one occurrence that these actions ask hooks about.
fn asked(actions: &[Action]) -> (String, Vec<String>) {
    let asked: Vec<_> = actions
        .iter()
        .filter_map(|action| match action {
            Action::RunHooks { occurrence_id, hooks, .. } => Some((occurrence_id.clone(), hooks.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 1, "{actions:?}");
    asked[0].clone()
}

pub(super) fn said(hook: &str, decision: HookDecision) -> HookResult {
    let text = (decision == HookDecision::TransformPreview).then(|| "another text".to_owned());
    let answer = HookAnswer { decision, reason: format!("{hook} wants it"), text };
    result(hook, HookSaid::Answered(answer), HookFailureMode::FailClosed)
}

fn result(hook: &str, said: HookSaid, on_failure: HookFailureMode) -> HookResult {
    HookResult { hook: hook.into(), plugin: "plugin".into(), on_failure, said, duration_ms: 3 }
}

pub(super) fn answers(actions: &[Action], results: Vec<HookResult>) -> Input {
    let (occurrence_id, _) = asked(actions);
    Input::HooksAnswered(Box::new(HooksAnswered {
        occurrence_id,
        phase: RunLifecycleHookPhase::BeforeRun,
        call_id: None,
        results,
        label: Label::system(),
    }))
}

fn ending(machine: &Machine) -> (RunLifecyclePhase, TerminationReason, String) {
    match machine.state() {
        Phase::Completed(end) | Phase::Failed(end) | Phase::Aborted(end) | Phase::Expired(end) => {
            (machine.phase(), end.reason, end.detail.clone().map(|detail| detail.code).unwrap_or_default())
        }
        other => panic!("not over: {other:?}"),
    }
}

fn calls_model(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::CallModel { .. }))
}

fn runs(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Execute { .. }))
}

fn request(actions: &[Action]) -> ApprovalRequest {
    let found = actions.iter().find_map(|action| match action {
        Action::RequestApproval(request) => Some((**request).clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nobody is asked: {actions:?}"))
}

fn answered(approval_id: palyra_common::ApprovalId, decision: ApprovalDecision) -> Input {
    Input::ApprovalDecided {
        approval_id,
        decision,
        scope: ApprovalScope::Once,
        until: None,
        by: "p".into(),
        via: None,
        reason: None,
    }
}

/// A run whose first call, of a writing tool, is being screened.
fn screening(bindings: Vec<HookBindingRecord>, verdict: ToolVerdict) -> (Machine, Vec<Action>) {
    let mut machine = bound(bindings);
    assert!(calls_model(&machine.step(Input::Started, AT).unwrap()));
    machine.step(turn(1, 1, "", &["t"]), AT).unwrap();
    let actions =
        machine.step(decided("t1c1", verdict, Concurrency::Exclusive, Repeatability::NonRepeatable), AT).unwrap();
    assert!(!runs(&actions));
    (machine, actions)
}

#[test]
fn without_a_binding_for_the_phase_nothing_is_asked_or_different() {
    let mut plain = Machine::accept(spec(), AT);
    let mut unrelated = bound(vec![hook("later", HookEvent::RunAfterTool)]);
    for input in [Input::Started, turn(1, 1, "done", &[])] {
        assert_eq!(plain.step(input.clone(), AT).unwrap(), unrelated.step(input, AT).unwrap());
    }
    assert!(!serde_json::to_string(&plain).unwrap().contains("hook"), "older snapshots read as they are");
}

#[test]
fn a_run_begins_when_its_hooks_agree_in_their_order() {
    let mut first = hook("z", HookEvent::RunBeforeRun);
    first.order = -1;
    let mut off = hook("off", HookEvent::RunBeforeRun);
    off.enabled = false;
    let mut machine = bound(vec![hook("b", HookEvent::RunBeforeRun), off, hook("a", HookEvent::RunBeforeRun), first]);
    let actions = machine.step(Input::Started, AT).unwrap();
    assert_eq!(asked(&actions).1, ["z", "a", "b"]);
    assert!(!calls_model(&actions));
    assert_eq!(machine.phase(), RunLifecyclePhase::Running);
    let results =
        vec![said("z", HookDecision::Annotate), said("a", HookDecision::Continue), said("b", HookDecision::Continue)];
    let went_on = machine.step(answers(&actions, results.clone()), AT).unwrap();
    assert!(calls_model(&went_on));
    assert!(machine.step(answers(&actions, results), AT).is_err(), "an answer counts once");
}

#[test]
fn a_run_that_is_refused_before_it_begins_asks_no_model() {
    let out_of_phase = said("h", HookDecision::TransformPreview);
    let slow = result("h", HookSaid::Failed(HookFailure::TimedOut), HookFailureMode::FailClosed);
    for (results, code) in [
        (vec![said("h", HookDecision::Block)], "hook_blocked"),
        (vec![said("h", HookDecision::FailRun)], "hook_failed_run"),
        (vec![out_of_phase], "hook_blocked"),
        (vec![slow], "hook_blocked"),
        (vec![], "hook_blocked"),
    ] {
        let mut machine = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
        let actions = machine.step(Input::Started, AT).unwrap();
        let over = machine.step(answers(&actions, results), AT).unwrap();
        assert!(!calls_model(&over) && !over.iter().any(|action| matches!(action, Action::StopHooks { .. })));
        assert_eq!(ending(&machine), (RunLifecyclePhase::Failed, TerminationReason::ApprovalDenied, code.into()));
        assert!(!machine.may_be_taken_up());
    }
    let open = result("h", HookSaid::Failed(HookFailure::TimedOut), HookFailureMode::FailOpen);
    let mut machine = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
    let actions = machine.step(Input::Started, AT).unwrap();
    assert!(calls_model(&machine.step(answers(&actions, vec![open]), AT).unwrap()));
}

#[test]
fn a_person_decides_whether_a_run_begins_if_a_hook_wants_it() {
    for (decision, begins) in [
        (ApprovalDecision::Allow, true),
        (ApprovalDecision::Deny, false),
        (ApprovalDecision::Timeout, false),
        (ApprovalDecision::Error, false),
    ] {
        let mut machine = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
        let actions = machine.step(Input::Started, AT).unwrap();
        let asks = machine.step(answers(&actions, vec![said("h", HookDecision::RequestApproval)]), AT).unwrap();
        assert_eq!(machine.phase(), RunLifecyclePhase::WaitingForApproval);
        let request = request(&asks);
        assert_eq!((request.question, request.tool.as_str()), (Question::MayGoOn, "palyra.run"));
        assert!(request.reasons[0].contains("h wants it"), "{:?}", request.reasons);
        let after = machine.step(answered(request.approval_id, decision), AT).unwrap();
        assert_eq!(calls_model(&after), begins);
        if !begins {
            let expected = (RunLifecyclePhase::Aborted, TerminationReason::ApprovalDenied, "approval_denied".into());
            assert_eq!(ending(&machine), expected);
        }
    }
}

#[test]
fn a_permitted_call_waits_for_hooks_and_a_refused_one_never_runs() {
    let hooks = || vec![hook("h", HookEvent::RunBeforeTool)];
    let (mut machine, actions) = screening(hooks(), ToolVerdict::Permit);
    assert!(runs(&machine.step(answers(&actions, vec![said("h", HookDecision::Continue)]), AT).unwrap()));

    for results in [vec![said("h", HookDecision::Block)], vec![said("h", HookDecision::TransformPreview)], vec![]] {
        let (mut machine, actions) = screening(hooks(), ToolVerdict::Permit);
        let refused = machine.step(answers(&actions, results), AT).unwrap();
        assert!(!runs(&refused) && calls_model(&refused), "the model is told and goes on");
        let told = refused.iter().find_map(|action| match action {
            Action::NotRun { error, label, .. } => Some((error.code.as_str(), error.message.as_str(), label.integrity)),
            _ => None,
        });
        let Some((BLOCKED, reason, palyra_common::Integrity::Untrusted)) = told else { panic!("{refused:?}") };
        assert!(reason.starts_with("hook `h`"), "people are told who refused, and why: {reason}");
        let Some(Item::ToolResult { content, failed: true, label, .. }) = machine.items().last() else {
            panic!("{:?}", machine.items())
        };
        assert!(content.starts_with("the hook `h` refused this call"), "{content}");
        assert!(!content.contains("wants it"), "what a hook says is kept from the planner like any untrusted text");
        assert_eq!(label.integrity, palyra_common::Integrity::ToolTrusted);
        assert!(machine.readings().last().unwrap().is_untrusted());
    }

    let (mut machine, actions) = screening(hooks(), ToolVerdict::Permit);
    machine.step(answers(&actions, vec![said("h", HookDecision::FailRun)]), AT).unwrap();
    assert_eq!(ending(&machine).2, "hook_failed_run");
}

#[test]
fn in_open_mode_the_model_reads_the_reason_in_a_frame() {
    let mut open = spec();
    open.mode = RunMode::Open;
    let mut machine = Machine::accept(open, AT);
    machine.step(Input::HooksBound { bindings: vec![hook("h", HookEvent::RunBeforeTool)] }, AT).unwrap();
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["t"]), AT).unwrap();
    let permit = decided("t1c1", ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable);
    let actions = machine.step(permit, AT).unwrap();
    machine.step(answers(&actions, vec![said("h", HookDecision::Block)]), AT).unwrap();
    let Some(Item::ToolResult { content, label, .. }) = machine.items().last() else { panic!("no result") };
    assert!(content.contains("h wants it"), "{content}");
    assert_eq!(label.integrity, palyra_common::Integrity::Untrusted);
}

#[test]
fn what_policy_denied_no_hook_sees() {
    let mut machine = bound(vec![hook("h", HookEvent::RunBeforeTool)]);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["t"]), AT).unwrap();
    let denied = decided("t1c1", ToolVerdict::Deny, Concurrency::Shared, Repeatability::Repeatable);
    let actions = machine.step(denied, AT).unwrap();
    assert!(!actions.iter().any(|action| matches!(action, Action::RunHooks { .. })) && calls_model(&actions));
}

#[test]
fn one_question_holds_the_reasons_of_policy_and_of_hooks() {
    for verdict in [ToolVerdict::Permit, ToolVerdict::NeedsApproval] {
        let (mut machine, actions) = screening(vec![hook("h", HookEvent::RunBeforeTool)], verdict);
        let asks = machine.step(answers(&actions, vec![said("h", HookDecision::RequestApproval)]), AT).unwrap();
        let request = request(&asks);
        assert_eq!(request.question, Question::MayItRun);
        assert_eq!(request.reasons, ["because", "hook `h`: h wants it"]);
        let allowed = machine.clone().step(answered(request.approval_id, ApprovalDecision::Allow), AT).unwrap();
        assert!(runs(&allowed), "hooks are not asked again: {allowed:?}");
        let denied = machine.step(answered(request.approval_id, ApprovalDecision::Deny), AT).unwrap();
        assert!(!runs(&denied) && calls_model(&denied));
    }
    // The policy's own question is the same whether a hook said nothing or there was none.
    let (mut machine, actions) = screening(vec![hook("h", HookEvent::RunBeforeTool)], ToolVerdict::NeedsApproval);
    let asks = machine.step(answers(&actions, vec![said("h", HookDecision::Continue)]), AT).unwrap();
    assert_eq!(request(&asks).reasons, ["because"]);
}

#[test]
fn a_clients_call_that_a_person_agreed_to_is_handed_back() {
    let mut spec = spec();
    spec.client_tools = vec![crate::spec::ClientTool {
        name: "ask".into(),
        description: String::new(),
        input_schema: serde_json::json!({}).into(),
    }];
    let mut machine = Machine::accept(spec, AT);
    machine.step(Input::HooksBound { bindings: vec![hook("h", HookEvent::RunBeforeTool)] }, AT).unwrap();
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["client.ask"]), AT).unwrap();
    let permit = decided("t1c1", ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable);
    let actions = machine.step(permit, AT).unwrap();
    let asks = machine.step(answers(&actions, vec![said("h", HookDecision::RequestApproval)]), AT).unwrap();
    let allowed = machine.step(answered(request(&asks).approval_id, ApprovalDecision::Allow), AT).unwrap();
    assert!(allowed.iter().any(|action| matches!(action, Action::HandBack { tool, .. } if tool == "ask")));
}

#[test]
fn a_result_is_reviewed_before_the_next_call_that_changes_something() {
    let mut machine = bound(vec![hook("h", HookEvent::RunAfterTool)]);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["t", "t"]), AT).unwrap();
    let permit = |id| decided(id, ToolVerdict::Permit, Concurrency::Exclusive, Repeatability::NonRepeatable);
    assert!(runs(&machine.step(permit("t1c1"), AT).unwrap()));
    machine.step(permit("t1c2"), AT).unwrap();
    let actions = machine.step(finished("t1c1", &"ä".repeat(20_000)), AT).unwrap();
    assert!(!runs(&actions), "{actions:?}");
    let Some(CallState::Reviewing(reviewing)) = machine.call("t1c1").map(|call| &call.state) else { panic!("no") };
    assert!(reviewing.more && reviewing.content.len() <= 16 << 10);
    let mut ended = machine.clone();
    // Block means nothing after the fact; it is a failure, which is recorded and goes on.
    assert!(runs(&machine.step(answers(&actions, vec![said("h", HookDecision::Block)]), AT).unwrap()));
    let over = ended.step(answers(&actions, vec![said("h", HookDecision::FailRun)]), AT).unwrap();
    assert!(!runs(&over));
    assert_eq!(ending(&ended).2, "hook_failed_run");
}

/// A run whose answer `done` waits for hooks.
fn delivering(bindings: Vec<HookBindingRecord>) -> (Machine, Vec<Action>) {
    let mut machine = bound(bindings);
    machine.step(Input::Started, AT).unwrap();
    let actions = machine.step(turn(1, 1, "done", &[]), AT).unwrap();
    assert!(!machine.is_over());
    (machine, actions)
}

fn delivered(machine: &Machine) -> Option<String> {
    match machine.state() {
        Phase::Completed(end) => end.answer.as_ref().map(|(answer, _)| answer.clone()),
        _ => None,
    }
}

#[test]
fn an_answer_is_delivered_refused_or_asked_about() {
    let hooks = || vec![hook("h", HookEvent::RunBeforeDelivery)];
    let (mut machine, actions) = delivering(hooks());
    machine.step(answers(&actions, vec![said("h", HookDecision::Annotate)]), AT).unwrap();
    assert_eq!(delivered(&machine).as_deref(), Some("done"));

    let (mut machine, actions) = delivering(hooks());
    machine.step(answers(&actions, vec![said("h", HookDecision::Block)]), AT).unwrap();
    assert_eq!(ending(&machine).2, "hook_blocked");

    for (decision, expected) in [(ApprovalDecision::Allow, Some("done")), (ApprovalDecision::Deny, None)] {
        let (mut machine, actions) = delivering(hooks());
        let asks = machine.step(answers(&actions, vec![said("h", HookDecision::RequestApproval)]), AT).unwrap();
        machine.step(answered(request(&asks).approval_id, decision), AT).unwrap();
        assert_eq!(delivered(&machine).as_deref(), expected);
        assert!(machine.is_over());
    }
}

#[test]
fn another_text_is_delivered_only_if_a_person_saw_it_and_agreed() {
    for (decision, expected) in [
        (ApprovalDecision::Allow, "another text"),
        (ApprovalDecision::Deny, "done"),
        (ApprovalDecision::Timeout, "done"),
    ] {
        let (mut machine, actions) = delivering(vec![hook("h", HookEvent::RunBeforeDelivery)]);
        let asks = machine.step(answers(&actions, vec![said("h", HookDecision::TransformPreview)]), AT).unwrap();
        let request = request(&asks);
        assert_eq!(request.question, Question::ReplaceAnswer);
        assert_eq!(request.arguments, serde_json::json!({ "answer": "done", "proposed": "another text" }));
        machine.step(answered(request.approval_id, decision), AT).unwrap();
        assert_eq!(delivered(&machine).as_deref(), Some(expected));
        let Phase::Completed(Ending { answer: Some((_, label)), .. }) = machine.state() else { panic!("not over") };
        let untrusted = label.integrity == palyra_common::Integrity::Untrusted;
        assert_eq!(untrusted, decision == ApprovalDecision::Allow, "{label:?}");
        // What the model wrote is still what it wrote.
        assert!(matches!(machine.items().last(), Some(Item::Assistant { text, .. }) if text == "done"));
    }
}

#[test]
fn a_text_that_one_hook_proposes_and_another_has_asked_about_is_delivered_or_nothing_is() {
    for (decision, expected) in [(ApprovalDecision::Allow, Some("another text")), (ApprovalDecision::Deny, None)] {
        let delivery = HookEvent::RunBeforeDelivery;
        let (mut machine, actions) = delivering(vec![hook("asks", delivery), hook("writes", delivery)]);
        let results = vec![said("asks", HookDecision::RequestApproval), said("writes", HookDecision::TransformPreview)];
        let asks = machine.step(answers(&actions, results), AT).unwrap();
        assert_eq!(request(&asks).question, Question::MayGoOn);
        assert_eq!(request(&asks).reasons, ["hook `asks`: asks wants it"]);
        machine.step(answered(request(&asks).approval_id, decision), AT).unwrap();
        assert_eq!(delivered(&machine).as_deref(), expected);
        if let Phase::Completed(Ending { answer: Some((_, label)), .. }) = machine.state() {
            assert!(label.sources.contains("hook:writes"), "{label:?}");
        }
    }
}

#[test]
fn what_a_person_writes_meanwhile_goes_before_the_answer() {
    let follow_up = |mode| Input::UserMessage { text: "and more".into(), mode };
    let (mut machine, actions) = delivering(vec![hook("h", HookEvent::RunBeforeDelivery)]);
    machine.step(follow_up(palyra_common::InputMode::FollowUp), AT).unwrap();
    let went_on = machine.step(answers(&actions, vec![said("h", HookDecision::TransformPreview)]), AT).unwrap();
    assert!(calls_model(&went_on), "{went_on:?}");

    let (mut machine, _) = delivering(vec![hook("h", HookEvent::RunBeforeDelivery)]);
    let went_on = machine.step(follow_up(palyra_common::InputMode::Interrupt), AT).unwrap();
    assert!(matches!(&went_on[..], [Action::StopHooks { .. }, Action::CallModel { turn: 2, .. }]), "{went_on:?}");

    // Nobody gets round the hooks of the beginning by writing.
    let mut machine = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
    machine.step(Input::Started, AT).unwrap();
    assert!(machine.step(follow_up(palyra_common::InputMode::Interrupt), AT).unwrap().is_empty());
}

#[test]
fn the_end_is_told_to_hooks_and_stays_as_it_is() {
    let mut machine = bound(vec![hook("h", HookEvent::RunAfterRun)]);
    machine.step(Input::Started, AT).unwrap();
    let actions = machine.step(turn(1, 1, "done", &[]), AT).unwrap();
    assert!(matches!(&actions[..], [Action::RunHooks { .. }, Action::Status(_)]), "{actions:?}");
    assert!(machine.step(answers(&actions, vec![said("h", HookDecision::FailRun)]), AT).is_err());
    assert_eq!(delivered(&machine).as_deref(), Some("done"));
}

#[test]
fn a_restart_asks_again_under_the_same_id_and_only_those_that_are_left() {
    let all = || {
        vec![
            hook("r", HookEvent::RunBeforeRun),
            hook("t", HookEvent::RunBeforeTool),
            hook("x", HookEvent::RunAfterTool),
            hook("d", HookEvent::RunBeforeDelivery),
        ]
    };
    let mut machine = bound(all());
    let step = |machine: &mut Machine, input: Input| {
        let actions = machine.step(input, AT).unwrap();
        let mut again = machine.clone();
        let recovered = again.step(Input::Recovered, AT).unwrap();
        assert_eq!(asked(&recovered), asked(&actions), "{recovered:?}");
        // Paused, it is the same.
        let mut held = machine.clone();
        held.step(Input::Pause { by: "p".into() }, AT).unwrap();
        assert_eq!(asked(&held.step(Input::Recovered, AT).unwrap()), asked(&actions));
        // Without bindings the step is simply taken.
        let mut unbound = machine.clone();
        unbound.step(Input::HooksBound { bindings: Vec::new() }, AT).unwrap();
        let went_on = unbound.step(Input::Recovered, AT).unwrap();
        assert!(!went_on.is_empty() && !went_on.iter().any(|action| matches!(action, Action::RunHooks { .. })));
        actions
    };
    let begun = step(&mut machine, Input::Started);
    machine.step(answers(&begun, vec![said("r", HookDecision::Continue)]), AT).unwrap();
    machine.step(turn(1, 1, "", &["t"]), AT).unwrap();
    let permit = decided("t1c1", ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable);
    let screened = step(&mut machine, permit);
    machine.step(answers(&screened, vec![said("t", HookDecision::Continue)]), AT).unwrap();
    let reviewed = step(&mut machine, finished("t1c1", "ok"));
    machine.step(answers(&reviewed, vec![said("x", HookDecision::Continue)]), AT).unwrap();
    let ready = step(&mut machine, turn(2, 1, "done", &[]));
    machine.step(answers(&ready, vec![said("d", HookDecision::Continue)]), AT).unwrap();
    assert_eq!(delivered(&machine).as_deref(), Some("done"));
}

#[test]
fn what_hooks_say_while_the_run_is_held_counts_when_it_goes_on() {
    let mut machine = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
    let actions = machine.step(Input::Started, AT).unwrap();
    machine.step(Input::Pause { by: "p".into() }, AT).unwrap();
    assert!(machine.step(answers(&actions, vec![said("h", HookDecision::Continue)]), AT).unwrap().is_empty());
    assert_eq!(machine.phase(), RunLifecyclePhase::Paused);
    assert!(machine.clone().step(Input::Recovered, AT).unwrap().is_empty(), "they are not asked again");
    let resumed = machine.step(Input::Resume { by: "p".into(), over_budget: None, model: None }, AT).unwrap();
    assert!(calls_model(&resumed));
}

#[test]
fn cancelling_and_running_out_of_time_stop_the_hooks() {
    let late = AT.plus(Duration::from_secs(24 * 3600));
    for (input, at, phase) in [
        (Input::Cancel { by: "p".into(), reason: None }, AT, RunLifecyclePhase::Aborted),
        (Input::Tick, late, RunLifecyclePhase::Failed),
    ] {
        let mut waiting = bound(vec![hook("h", HookEvent::RunBeforeRun)]);
        let begun = waiting.step(Input::Started, AT).unwrap();
        let (screened, screen) = screening(vec![hook("h", HookEvent::RunBeforeTool)], ToolVerdict::Permit);
        for (mut machine, actions) in [(waiting, begun), (screened, screen)] {
            let over = machine.step(input.clone(), at).unwrap();
            let stop = Action::StopHooks { occurrence_id: asked(&actions).0 };
            assert!(over.contains(&stop), "{over:?}");
            assert_eq!(machine.phase(), phase);
        }
    }
}

#[test]
fn a_question_of_a_hook_lapses_and_is_taken_back() {
    let mut limited = spec();
    limited.limits.approval_timeout_ms = 5_000;
    let mut machine = Machine::accept(limited, AT);
    machine.step(Input::HooksBound { bindings: vec![hook("h", HookEvent::RunBeforeRun)] }, AT).unwrap();
    let actions = machine.step(Input::Started, AT).unwrap();
    let asks = machine.step(answers(&actions, vec![said("h", HookDecision::RequestApproval)]), AT).unwrap();
    let request = request(&asks);
    let later = AT.plus(Duration::from_secs(6));
    assert_eq!(machine.next_deadline(), request.expires_at);
    let due = machine.due(later);
    assert!(matches!(&due[..], [Input::ApprovalDecided { decision: ApprovalDecision::Timeout, .. }]), "{due:?}");
    let mut cancelled = machine.clone();
    machine.step(due[0].clone(), later).unwrap();
    assert_eq!(ending(&machine).1, TerminationReason::ApprovalDenied);
    let over = cancelled.step(Input::Cancel { by: "p".into(), reason: None }, AT).unwrap();
    assert!(over.contains(&Action::WithdrawApproval { approval_id: request.approval_id }));
}
