//! Hooks in running engines: each phase with each kind of answer and failure.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use palyra_agent::{ApprovalFilter, ApprovalRow, HookFailure, HookFailureMode, HookSwitch, Resumption};
use palyra_common::{
    ApprovalDecision, HookDecision, HookEvent, Integrity, RunId, RunLifecyclePhase, RunStreamBody, TerminationReason,
    ToStableError as _,
};

use crate::hooks_support::{Does, Hooks, binding, failure, hasty, of_kind, results};
use crate::support::{Bench, Gate, Hang, Setup, TestTool, actor, answer, is_phase};

const CALL: &str = "[[turn]]\n[[turn.call]]\ntool = \"test.once\"\narguments = {}\n[[turn]]\ntext = \"done\"";
const ANSWER: &str = "[[turn]]\ntext = \"done\"";

/// An engine whose model calls a counting tool once and then answers.
async fn calling(hooks: &Arc<Hooks>) -> (Bench, Arc<std::sync::atomic::AtomicU32>) {
    let tool = TestTool::new("test.once", Hang::No);
    let calls = Arc::clone(&tool.calls);
    let mut setup = Setup::script(CALL).hooks(hooks);
    setup.tools = vec![Arc::new(tool)];
    (setup.start().await, calls)
}

async fn asked(bench: &Bench, run_id: RunId) -> ApprovalRow {
    bench.follow_until(run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
    let open = bench.engine.approvals(ApprovalFilter { run_id: Some(run_id), open: Some(true) }).await.unwrap();
    assert_eq!(open.len(), 1);
    open[0].clone()
}

const FAILING: [(Does, HookFailure); 5] = [
    (Does::Hang, HookFailure::TimedOut),
    (Does::Panic, HookFailure::Failed(String::new())),
    (Does::Fail(HookFailure::Failed(String::new())), HookFailure::Failed(String::new())),
    (Does::Fail(HookFailure::Unavailable(String::new())), HookFailure::Unavailable(String::new())),
    // Allowed nowhere but before delivery.
    (Does::Propose("text"), HookFailure::OutOfPhase(HookDecision::TransformPreview)),
];

fn same_kind(left: &HookFailure, right: &HookFailure) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

#[tokio::test]
async fn without_bindings_no_tape_mentions_hooks() {
    let hooks = Hooks::doing(&[]);
    let (bench, _) = calling(&hooks).await;
    // One for an event of no run, one that is switched off.
    bench.bind(vec![binding("up", HookEvent::GatewayStartup), binding("off", HookEvent::RunBeforeTool)]).await;
    bench.engine.switch_hook("off", HookSwitch::Disabled, "admin").await.unwrap();
    let (run, events) = bench.run("go").await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed);
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("hook"), "{text}");
    assert!(hooks.told().is_empty());
}

#[tokio::test]
async fn all_phases_are_dispatched_in_order_and_told_what_there_is_to_know() {
    let hooks = Hooks::doing(&[("note", Does::Say(HookDecision::Annotate))]);
    let (bench, calls) = calling(&hooks).await;
    let mut first = binding("zuerst", HookEvent::RunBeforeTool);
    first.order = -5;
    bench
        .bind(vec![
            binding("begin", HookEvent::RunBeforeRun),
            binding("guard", HookEvent::RunBeforeTool),
            first,
            binding("note", HookEvent::RunAfterTool),
            binding("deliver", HookEvent::RunBeforeDelivery),
            binding("over", HookEvent::RunAfterRun),
        ])
        .await;
    let (run, events) = bench.run("go on, please").await;
    assert_eq!((run.phase, run.answer.as_deref()), (RunLifecyclePhase::Completed, Some("done")));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    hooks.reached(6).await;
    let told = hooks.told();
    let order: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(order, ["begin", "zuerst", "guard", "note", "deliver", "over"]);
    let payload = |index: usize| told[index].1.payload.clone();
    assert_eq!(payload(0)["prompt"], "go on, please");
    assert_eq!((&payload(2)["tool"], &payload(2)["verdict"]), (&"test.once".into(), &"permit".into()));
    assert_eq!(payload(2)["label"]["integrity"], "user");
    assert_eq!((&payload(3)["content"], &payload(3)["ok"]), (&"call 1".into(), &true.into()));
    assert_eq!(payload(4)["answer"], "done");
    assert_eq!((&payload(5)["phase"], &payload(5)["answer"]), (&"completed".into(), &"done".into()));
    for (_, occurrence) in &told {
        assert_eq!(occurrence.run_id, Some(run.run_id));
        assert_eq!(occurrence.payload["owner"], "local");
    }
    // The note is on the tape, labelled as what anybody could have said; the terminal event is the last of its commit.
    let answered = of_kind(&events, "hooks.answered");
    assert_eq!(answered.len(), 4);
    assert!(answered[2].to_string().contains("note says so"));
    assert_eq!(answered[2]["input"]["hooks_answered"]["label"]["integrity"], "untrusted");
    assert!(events.last().unwrap().is_terminal());
    let whole = bench.noted(run.run_id).await;
    assert_eq!(of_kind(&whole, "hooks.noted").len(), 1);
    assert_eq!(bench.engine.replay(run.run_id).await.unwrap().difference, None);
}

#[tokio::test]
async fn whoever_fails_before_an_effect_refuses_it_unless_bound_otherwise() {
    for (does, expected) in FAILING {
        for mode in [HookFailureMode::FailClosed, HookFailureMode::FailOpen] {
            for event in [HookEvent::RunBeforeRun, HookEvent::RunBeforeTool, HookEvent::RunBeforeDelivery] {
                if event == HookEvent::RunBeforeDelivery && matches!(does, Does::Propose(_)) {
                    continue;
                }
                let hooks = Hooks::doing(&[("h", does.clone())]);
                let (bench, calls) = calling(&hooks).await;
                let mut bound = if matches!(does, Does::Hang) { hasty("h", event) } else { binding("h", event) };
                bound.on_failure = mode;
                bench.bind(vec![bound]).await;
                let (run, events) = bench.run("go").await;
                let said = results(&events);
                assert!(same_kind(&failure(&said[0]), &expected), "{said:?}");
                let case = format!("{event} {mode} {expected}");
                let calls = calls.load(Ordering::SeqCst);
                match (mode, event) {
                    (HookFailureMode::FailOpen, _) => {
                        assert_eq!((run.phase, calls), (RunLifecyclePhase::Completed, 1), "{case}");
                    }
                    (_, HookEvent::RunBeforeTool) => {
                        assert_eq!((run.phase, calls), (RunLifecyclePhase::Completed, 0), "{case}");
                    }
                    (_, _) => {
                        assert_eq!(run.reason, Some(TerminationReason::ApprovalDenied), "{case}");
                        assert_eq!(run.phase, RunLifecyclePhase::Failed, "{case}");
                        assert_eq!(run.detail.unwrap().code, "hook_blocked", "{case}");
                        assert_eq!(run.answer, None);
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn whoever_fails_after_the_fact_is_recorded_and_nothing_else() {
    let out_of_phase = [Does::Say(HookDecision::Block), Does::Say(HookDecision::RequestApproval)];
    let failing = FAILING.map(|(does, _)| does).into_iter().chain(out_of_phase);
    for does in failing {
        let hooks = Hooks::doing(&[("t", does.clone()), ("r", does)]);
        let (bench, calls) = calling(&hooks).await;
        bench.bind(vec![hasty("t", HookEvent::RunAfterTool), hasty("r", HookEvent::RunAfterRun)]).await;
        let (run, events) = bench.run("go").await;
        assert_eq!((run.phase, calls.load(Ordering::SeqCst)), (RunLifecyclePhase::Completed, 1));
        failure(&results(&events)[0]);
        let noted = of_kind(&bench.noted(run.run_id).await, "hooks.noted");
        assert!(noted[0].to_string().contains("\"failed\""), "{noted:?}");
    }
    // Ending the run is allowed after a tool, and comes too late after the run.
    let hooks = Hooks::doing(&[("r", Does::Say(HookDecision::FailRun))]);
    let (bench, _) = calling(&hooks).await;
    bench.bind(vec![binding("r", HookEvent::RunAfterRun)]).await;
    let (run, _) = bench.run("go").await;
    bench.noted(run.run_id).await;
    assert_eq!(bench.engine.run(run.run_id).await.unwrap().phase, RunLifecyclePhase::Completed);
}

#[tokio::test]
async fn a_refused_call_is_told_to_the_model_and_the_reason_to_the_person() {
    let hooks = Hooks::doing(&[("guard", Does::Say(HookDecision::Block)), ("weak", Does::Say(HookDecision::Annotate))]);
    let mut setup = Setup::script(
        "[[turn]]\n[[turn.call]]\ntool = \"test.once\"\narguments = {}\n[[turn]]\necho = \"last_result\"",
    )
    .hooks(&hooks);
    let tool = TestTool::new("test.once", Hang::No);
    let calls = Arc::clone(&tool.calls);
    setup.tools = vec![Arc::new(tool)];
    let bench = setup.start().await;
    bench.bind(vec![binding("guard", HookEvent::RunBeforeTool), binding("weak", HookEvent::RunBeforeTool)]).await;
    let (run, events) = bench.run("go").await;
    let told = run.answer.unwrap();
    assert!(told.contains("the hook `guard` refused this call"), "{told}");
    assert!(!told.contains("says so"), "the planner is not shown what a hook says: {told}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(hooks.told().len(), 2, "a stronger answer could still have come");
    assert!(results(&events).iter().any(|result| format!("{result:?}").contains("guard says so")));
    let export = bench.engine.export_session(run.session_id).await.unwrap();
    let reasons = serde_json::to_string(&export).unwrap();
    assert!(reasons.contains("hook `guard`: block: guard says so"), "{reasons}");
}

#[tokio::test]
async fn nobody_is_asked_after_a_hook_that_ends_the_run() {
    for event in
        [HookEvent::RunBeforeRun, HookEvent::RunBeforeTool, HookEvent::RunAfterTool, HookEvent::RunBeforeDelivery]
    {
        let hooks = Hooks::doing(&[("a", Does::Say(HookDecision::Block)), ("b", Does::Say(HookDecision::FailRun))]);
        let (bench, _) = calling(&hooks).await;
        bench.bind(vec![binding("a", event), binding("b", event), binding("c", event)]).await;
        let (run, _) = bench.run("go").await;
        assert_eq!(run.phase, RunLifecyclePhase::Failed);
        assert_eq!(run.detail.unwrap().code, "hook_failed_run", "{event}");
        let order: Vec<String> = hooks.told().into_iter().map(|(id, _)| id).collect();
        assert_eq!(order, ["a", "b"]);
    }
}

#[tokio::test]
async fn a_person_answers_for_a_call_when_a_hook_asks() {
    for (decision, expected) in [(ApprovalDecision::Allow, 1), (ApprovalDecision::Deny, 0)] {
        let hooks = Hooks::doing(&[("guard", Does::Say(HookDecision::RequestApproval))]);
        let (bench, calls) = calling(&hooks).await;
        let mut bound = binding("guard", HookEvent::RunBeforeTool);
        bound.tools = vec!["test.*".into()];
        bench.bind(vec![bound]).await;
        let run = bench.engine.create_run(bench.task("go")).await.unwrap();
        let approval = asked(&bench, run.run_id).await;
        assert!(approval.reason.contains("hook `guard`: guard says so"), "{}", approval.reason);
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        bench.engine.decide_approval(approval.approval_id, answer(decision)).await.unwrap();
        let (row, _) = bench.finish(run.run_id).await;
        assert_eq!((row.phase, calls.load(Ordering::SeqCst)), (RunLifecyclePhase::Completed, expected));
        assert_eq!(hooks.told().len(), 1, "hooks are not asked again after the answer");
    }
}

#[tokio::test]
async fn a_person_answers_for_the_run_when_a_hook_asks() {
    for (decision, expected) in
        [(ApprovalDecision::Allow, RunLifecyclePhase::Completed), (ApprovalDecision::Deny, RunLifecyclePhase::Aborted)]
    {
        let hooks = Hooks::doing(&[("gate", Does::Say(HookDecision::RequestApproval))]);
        let bench = Setup::script(ANSWER).hooks(&hooks).start().await;
        bench.bind(vec![binding("gate", HookEvent::RunBeforeRun)]).await;
        let run = bench.engine.create_run(bench.task("delicate")).await.unwrap();
        let approval = asked(&bench, run.run_id).await;
        assert_eq!((approval.tool.as_str(), approval.question.as_str()), ("palyra.run", "may_go_on"));
        bench.engine.decide_approval(approval.approval_id, answer(decision)).await.unwrap();
        let (row, _) = bench.finish(run.run_id).await;
        assert_eq!((row.phase, row.turns > 0), (expected, decision == ApprovalDecision::Allow));
    }
}

#[tokio::test]
async fn another_text_is_proposed_step_by_step_and_counts_when_a_person_agrees() {
    for (decision, expected) in [(ApprovalDecision::Allow, "second"), (ApprovalDecision::Deny, "done")] {
        let hooks = Hooks::doing(&[("a", Does::Propose("first")), ("b", Does::Propose("second"))]);
        let bench = Setup::script(ANSWER).hooks(&hooks).start().await;
        let delivery = HookEvent::RunBeforeDelivery;
        bench.bind(vec![binding("a", delivery), binding("b", delivery)]).await;
        let run = bench.engine.create_run(bench.task("say it")).await.unwrap();
        let approval = asked(&bench, run.run_id).await;
        assert_eq!(approval.question.as_str(), "replace_answer");
        assert_eq!(approval.arguments, serde_json::json!({ "answer": "done", "proposed": "second" }));
        assert_eq!(hooks.told()[1].1.payload["proposed"], "first", "the second sees what the first proposed");
        bench.engine.decide_approval(approval.approval_id, answer(decision)).await.unwrap();
        let (row, events) = bench.finish(run.run_id).await;
        assert_eq!(row.answer.as_deref(), Some(expected));
        let untrusted = row.answer_label.unwrap().integrity == Integrity::Untrusted;
        assert_eq!(untrusted, decision == ApprovalDecision::Allow);
        // The original is never lost.
        assert!(events.iter().any(|event| matches!(
            &event.body, RunStreamBody::JournalEvent(event)
                if event.kind == "model.turn_finished" && event.payload.to_string().contains("\"done\"")
        )));
    }
}

#[tokio::test]
async fn cancelling_does_not_wait_for_hooks() {
    for event in
        [HookEvent::RunBeforeRun, HookEvent::RunBeforeTool, HookEvent::RunAfterTool, HookEvent::RunBeforeDelivery]
    {
        let hooks = Hooks::doing(&[("slow", Does::Hang)]);
        let (bench, calls) = calling(&hooks).await;
        let mut slow = binding("slow", event);
        slow.deadline_ms = 30_000;
        bench.bind(vec![slow]).await;
        let run = bench.engine.create_run(bench.task("go")).await.unwrap();
        hooks.reached(1).await;
        bench.engine.cancel(run.run_id, "me", None).await.unwrap();
        let (row, events) = bench.finish(run.run_id).await;
        assert_eq!(row.phase, RunLifecyclePhase::Aborted, "{event}");
        assert_eq!(of_kind(&events, "hooks.stop").len(), 1, "{event}");
        let ran = u32::from(matches!(event, HookEvent::RunAfterTool | HookEvent::RunBeforeDelivery));
        assert_eq!(calls.load(Ordering::SeqCst), ran, "{event}");
    }
}

#[tokio::test]
async fn a_binding_made_while_a_run_is_at_work_counts_from_then_on() {
    let hooks = Hooks::doing(&[("late", Does::Say(HookDecision::Block))]);
    let script = "[[turn]]\n[[turn.call]]\ntool = \"test.slow\"\narguments = {}\n[[turn]]\n[[turn.call]]\n\
                  tool = \"test.once\"\narguments = {}\n[[turn]]\ntext = \"done\"";
    let (gate, tool) = (Gate::reading("test.slow"), TestTool::new("test.once", Hang::No));
    let calls = Arc::clone(&tool.calls);
    let mut setup = Setup::script(script).hooks(&hooks);
    setup.tools = vec![Arc::new(gate.clone()), Arc::new(tool)];
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("go")).await.unwrap();
    gate.reached(1).await;
    bench.bind(vec![binding("late", HookEvent::RunBeforeTool)]).await;
    gate.open();
    let (row, events) = bench.finish(run.run_id).await;
    assert_eq!((row.phase, calls.load(Ordering::SeqCst)), (RunLifecyclePhase::Completed, 0));
    assert_eq!(of_kind(&events, "hooks.bound").len(), 1);
}

#[tokio::test]
async fn bindings_are_kept_changed_and_removed() {
    let bench = Setup::script(ANSWER).start().await;
    let wrong = bench.engine.bind_hook(binding("Wrong", HookEvent::RunBeforeRun), "admin").await.unwrap_err();
    assert_eq!(wrong.to_stable().code, "hook_binding_invalid");
    bench.bind(vec![binding("b", HookEvent::RunBeforeRun), binding("a", HookEvent::RunAfterTool)]).await;
    let mut replaced = binding("b", HookEvent::RunBeforeTool);
    replaced.tools = vec!["palyra.fs.*".into()];
    let row = bench.engine.bind_hook(replaced.clone(), "other").await.unwrap();
    assert_eq!((&row.binding, row.changed_by.as_str()), (&replaced, "other"));
    let off = bench.engine.switch_hook("a", HookSwitch::Disabled, "admin").await.unwrap();
    assert!(!off.binding.enabled);
    let listed: Vec<String> =
        bench.engine.hook_bindings().await.unwrap().into_iter().map(|row| row.binding.id).collect();
    assert_eq!(listed, ["a", "b"]);
    bench.engine.unbind_hook("b", "admin").await.unwrap();
    for error in [
        bench.engine.unbind_hook("b", "admin").await.unwrap_err(),
        bench.engine.switch_hook("b", HookSwitch::Enabled, "admin").await.unwrap_err(),
        bench.engine.hook_binding("b").await.unwrap_err(),
    ] {
        assert_eq!(error.to_stable().code, "hook_binding_not_found");
    }
}

#[tokio::test]
async fn undoing_waits_until_hooks_were_told_of_the_end() {
    let hooks = Hooks::doing(&[("slow", Does::Hang)]);
    let script = "[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\narguments = { path = \"a.txt\", content = \"x\" }\n\
                  [[turn]]\ntext = \"done\"";
    let bench = Setup::script(script).hooks(&hooks).start().await;
    let mut slow = binding("slow", HookEvent::RunAfterRun);
    slow.deadline_ms = 200;
    bench.bind(vec![slow]).await;
    let (run, _) = bench.run("write").await;
    assert!(bench.file("a.txt").exists());
    bench
        .engine
        .undo(run.run_id, palyra_agent::UndoOptions::default(), "me", palyra_agent::WorkspaceAuthority::LocalOwner)
        .await
        .unwrap();
    assert!(!bench.file("a.txt").exists());
    let events = bench.engine.tape(run.run_id, 1, usize::MAX).await.unwrap();
    let place = |kind: &str| {
        let of_kind = |event: &palyra_common::RunStreamEvent| matches!(&event.body, RunStreamBody::JournalEvent(event) if event.kind == kind);
        events.iter().position(of_kind).unwrap()
    };
    assert!(place("hooks.noted") < place("run.undone"));
    assert_eq!(bench.engine.replay(run.run_id).await.unwrap().difference, None);
}

#[tokio::test]
async fn working_time_is_limited_while_hooks_are_asked() {
    let hooks = Hooks::doing(&[("slow", Does::Hang)]);
    let mut setup = Setup::script(ANSWER).hooks(&hooks);
    setup.limits.wall_clock_ms = 100;
    let bench = setup.start().await;
    bench.bind(vec![binding("slow", HookEvent::RunBeforeRun)]).await;
    let (row, events) = bench.run("go").await;
    assert_eq!((row.phase, row.reason), (RunLifecyclePhase::Failed, Some(TerminationReason::WallClock)));
    assert_eq!(of_kind(&events, "hooks.stop").len(), 1);
}

#[tokio::test]
async fn what_hooks_say_while_a_run_is_paused_is_heard_when_it_goes_on() {
    let hooks = Hooks::doing(&[("slow", Does::Wait)]);
    let bench = Setup::script(ANSWER).hooks(&hooks).start().await;
    let mut slow = binding("slow", HookEvent::RunBeforeRun);
    slow.deadline_ms = 30_000;
    bench.bind(vec![slow]).await;
    let run = bench.engine.create_run(bench.task("go")).await.unwrap();
    hooks.reached(1).await;
    bench.engine.pause(run.run_id, "me").await.unwrap();
    hooks.open();
    let answered = |event: &palyra_common::RunStreamEvent| matches!(&event.body, RunStreamBody::JournalEvent(event) if event.kind == "hooks.answered");
    bench.follow_until(run.run_id, answered).await;
    assert_eq!(bench.engine.run(run.run_id).await.unwrap().phase, RunLifecyclePhase::Paused);
    bench.engine.resume(run.run_id, &actor("me"), Resumption::default()).await.unwrap();
    assert_eq!(bench.finish(run.run_id).await.0.phase, RunLifecyclePhase::Completed);
}

#[tokio::test]
async fn a_run_that_is_resumed_tells_its_hooks_of_each_end() {
    let hooks = Hooks::doing(&[("over", Does::Say(HookDecision::Annotate))]);
    let script = "[[turn]]\nerror = { class = \"auth\", message = \"no\" }";
    let bench = Setup::script(script).hooks(&hooks).start().await;
    bench.bind(vec![binding("over", HookEvent::RunAfterRun)]).await;
    let (run, _) = bench.run("go").await;
    assert_eq!(run.reason, Some(TerminationReason::ProviderError));
    bench.engine.resume(run.run_id, &actor("local"), Resumption::default()).await.unwrap();
    hooks.reached(2).await;
    let told = hooks.told();
    assert_ne!(told[0].1.id, told[1].1.id, "two ends are two occurrences");
    let noted = async {
        while of_kind(&bench.engine.tape(run.run_id, 1, usize::MAX).await.unwrap(), "hooks.noted").len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), noted).await.expect("both are noted");
    assert_eq!(bench.engine.replay(run.run_id).await.unwrap().difference, None);
}

#[tokio::test]
async fn whoever_reads_the_end_together_with_what_hooks_said_of_it_does_not_wait_for_more() {
    let hooks = Hooks::doing(&[("over", Does::Wait)]);
    let bench = Setup::script(ANSWER).hooks(&hooks).start().await;
    let mut over = binding("over", HookEvent::RunAfterRun);
    over.deadline_ms = 30_000;
    bench.bind(vec![over]).await;
    let run = bench.engine.create_run(bench.task("go")).await.unwrap();
    hooks.reached(1).await;
    // Begins while the hook is asked, and reads only when both are there.
    let mut follower = bench.engine.follow(run.run_id, 1).await.unwrap();
    hooks.open();
    let noted = async {
        while of_kind(&bench.engine.tape(run.run_id, 1, usize::MAX).await.unwrap(), "hooks.noted").is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), noted).await.expect("it is noted");
    let reading = async { while follower.next().await.unwrap().is_some() {} };
    tokio::time::timeout(std::time::Duration::from_secs(20), reading).await.expect("the end is an end");
}
