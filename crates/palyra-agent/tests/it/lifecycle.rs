//! Whole runs: answers, tools, sessions, limits, undo.

use palyra_agent::{AgentError, NewRun, Resumption, RunFilter, RunLimits};
use palyra_common::{RunLifecyclePhase, RunStreamBody, TerminationReason, ToStableError as _};

use crate::support::{Hang, Setup, TestTool, actor, is_phase, tool_result};

const WRITE_THEN_READ: &str = r#"
[[turn]]
text = ["Writing ", "it."]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "one\n" }

[[turn]]
[[turn.call]]
tool = "palyra.fs.read"
arguments = { path = "a.txt" }
[[turn.call]]
tool = "palyra.fs.list"
arguments = {}

[[turn]]
echo = "last_result"
"#;

#[tokio::test]
async fn a_run_works_with_tools_and_ends_with_an_answer() {
    let bench = Setup::script(WRITE_THEN_READ).start().await;
    let (run, events) = bench.run("do it").await;
    assert_eq!((run.phase, run.reason), (RunLifecyclePhase::Completed, Some(TerminationReason::FinalAnswer)));
    assert_eq!((run.turns, run.tool_calls), (3, 3));
    assert_eq!(std::fs::read_to_string(bench.file("a.txt")).unwrap(), "one\n");
    assert!(tool_result(&events, "t2c1").content.contains("one"));
    let kinds: Vec<_> = events.iter().map(|event| event.body.kind()).collect();
    assert_eq!(&kinds[..2], ["status", "status"], "queued, running");
    assert_eq!(kinds.iter().filter(|kind| **kind == "tool_attestation").count(), 3);
    let details = bench.engine.run_details(run.run_id).await.unwrap();
    assert_eq!(details.changes.len(), 1);
    assert_eq!(details.last_seq, events.len() as u64);
}

#[tokio::test]
async fn undo_puts_the_files_back_once() {
    let bench = Setup::script(WRITE_THEN_READ).start().await;
    std::fs::write(bench.file("a.txt"), "zero\n").unwrap();
    let (run, _) = bench.run("do it").await;
    bench
        .engine
        .undo(run.run_id, palyra_agent::UndoOptions::default(), "me", palyra_agent::WorkspaceAuthority::LocalOwner)
        .await
        .unwrap();
    assert_eq!(std::fs::read_to_string(bench.file("a.txt")).unwrap(), "zero\n");
    assert!(bench.engine.run(run.run_id).await.unwrap().undone);
    let again = bench
        .engine
        .undo(run.run_id, palyra_agent::UndoOptions::default(), "me", palyra_agent::WorkspaceAuthority::LocalOwner)
        .await
        .unwrap_err();
    assert_eq!(again.to_stable().code, "cannot_undo");
    assert_eq!(bench.engine.replay(run.run_id).await.unwrap().difference, None, "a note does not disturb replay");
}

#[tokio::test]
async fn undo_refuses_when_a_file_was_changed_since() {
    let bench = Setup::script(WRITE_THEN_READ).start().await;
    let (run, _) = bench.run("do it").await;
    std::fs::write(bench.file("a.txt"), "mine now\n").unwrap();
    assert!(
        bench
            .engine
            .undo(run.run_id, palyra_agent::UndoOptions::default(), "me", palyra_agent::WorkspaceAuthority::LocalOwner)
            .await
            .is_err()
    );
    assert_eq!(std::fs::read_to_string(bench.file("a.txt")).unwrap(), "mine now\n");
}

#[tokio::test]
async fn the_next_run_of_a_session_knows_what_was_said() {
    let bench = Setup::script("[[turn]]\ntext = \"The answer is 42.\"").start().await;
    let first = bench.engine.create_run(NewRun { session_key: Some("s".into()), ..bench.task("first") }).await.unwrap();
    bench.finish(first.run_id).await;
    let second =
        bench.engine.create_run(NewRun { session_key: Some("s".into()), ..bench.task("again") }).await.unwrap();
    assert_eq!(second.session_id, first.session_id);
    bench.finish(second.run_id).await;
    let replayed = bench.engine.replay(second.run_id).await.unwrap();
    let history = &replayed.machine.spec().history;
    assert_eq!(history[0].prompt, "first");
    assert_eq!(history[0].answer, "The answer is 42.");
    assert_eq!(bench.engine.session(first.session_id).await.unwrap().runs, 2);
    let runs = bench.engine.runs(RunFilter { limit: 10, ..RunFilter::default() }).await.unwrap();
    assert_eq!(runs.len(), 2);
}

#[tokio::test]
async fn an_idempotency_key_gives_the_same_run_or_a_conflict() {
    let bench = Setup::script("[[turn]]\ntext = \"ok\"").start().await;
    let keyed = |prompt: &str| NewRun { idempotency_key: Some("k".into()), ..bench.task(prompt) };
    let first = bench.engine.create_run(keyed("one")).await.unwrap();
    assert_eq!(bench.engine.create_run(keyed("one")).await.unwrap().run_id, first.run_id);
    assert!(matches!(bench.engine.create_run(keyed("two")).await, Err(AgentError::IdempotencyConflict(_))));
}

#[tokio::test]
async fn runs_beyond_the_limit_wait_their_turn() {
    let mut setup = Setup::script("[[turn]]\ntext = \"ok\"\ndelay_ms = 50");
    setup.max_concurrent = 1;
    let bench = setup.start().await;
    let mut runs = Vec::new();
    for n in 0..4 {
        runs.push(bench.engine.create_run(bench.task(&format!("task {n}"))).await.unwrap());
    }
    assert_eq!(runs[0].phase, RunLifecyclePhase::Running);
    assert_eq!(runs[3].phase, RunLifecyclePhase::Queued);
    for run in runs {
        assert_eq!(bench.finish(run.run_id).await.0.phase, RunLifecyclePhase::Completed);
    }
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_stopped() {
    let turn = "[[turn]]\n[[turn.call]]\ntool = \"test.read\"\narguments = {}\n";
    let mut setup = Setup::script("");
    // The tool of this test always answers the same.
    setup.script = turn.repeat(10).replace("test.read", "palyra.fs.list");
    let bench = setup.start().await;
    let (run, _) = bench.run("spin").await;
    assert_eq!(run.reason, Some(TerminationReason::MaxToolCalls));
    assert_eq!(run.detail.unwrap().code, "loop_detected");
    assert_eq!(run.tool_calls, RunLimits::default().loop_repeats);
}

#[tokio::test]
async fn an_unknown_tool_wrong_arguments_and_a_dead_policy_are_denials() {
    let script = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.reed"
arguments = {}
[[turn.call]]
tool = "palyra.fs.read"
arguments = { pth = "x" }
[[turn.call]]
tool = "test.broken_policy"
arguments = {}
[[turn]]
echo = "last_result"
"#;
    let mut setup = Setup::script(script);
    let tool = TestTool::new("test.broken_policy", Hang::No);
    let calls = tool.calls.clone();
    setup.tools = vec![std::sync::Arc::new(tool)];
    let bench = setup.start().await;
    let (run, events) = bench.run("try").await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed);
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 0, "a decider that fails has denied");
    let reasons: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::ToolDecision(decision) => Some(decision.reasons.join(" ")),
            _ => None,
        })
        .collect();
    assert!(reasons[0].contains("palyra.fs.read"), "{reasons:?}");
    assert!(reasons[1].contains("pth"), "{reasons:?}");
    assert!(reasons[2].contains("policy_unreadable"), "{reasons:?}");
}

#[tokio::test]
async fn pausing_holds_a_run_and_steering_reaches_it() {
    let script = r#"
[[script]]
when = "more"
[[script.turn]]
text = "second"
[[script]]
[[script.turn]]
text = "first"
delay_ms = 300
"#;
    let bench = Setup::script(script).start().await;
    let run = bench.engine.create_run(bench.task("begin")).await.unwrap();
    bench.engine.pause(run.run_id, "me").await.unwrap();
    assert_eq!(bench.engine.run(run.run_id).await.unwrap().phase, RunLifecyclePhase::Paused);
    bench.engine.resume(run.run_id, &actor("me"), Resumption::default()).await.unwrap();
    bench
        .engine
        .steer(run.run_id, &actor("local"), "more please".into(), palyra_common::InputMode::FollowUp)
        .await
        .unwrap();
    let (row, events) = bench.finish(run.run_id).await;
    assert_eq!(row.answer.as_deref(), Some("second"));
    assert!(events.iter().any(is_phase(RunLifecyclePhase::Paused)));
    let late = bench.engine.pause(run.run_id, "me").await.unwrap_err();
    assert_eq!(late.to_stable().code, "run_wrong_phase");
}

#[tokio::test]
async fn an_interrupt_replaces_what_the_model_was_saying() {
    let script = "[[script]]\nwhen = \"stop\"\n[[script.turn]]\ntext = \"stopped\"\n[[script]]\n[[script.turn]]\ntext = \"never said\"\ndelay_ms = 60000";
    let bench = Setup::script(script).start().await;
    let run = bench.engine.create_run(bench.task("begin")).await.unwrap();
    bench
        .engine
        .steer(run.run_id, &actor("local"), "stop that".into(), palyra_common::InputMode::Interrupt)
        .await
        .unwrap();
    assert_eq!(bench.finish(run.run_id).await.0.answer.as_deref(), Some("stopped"));
}
