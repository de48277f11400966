//! Writing to sessions while a run is at work: follow-ups, collections, steering, interruptions.

use std::sync::Arc;
use std::time::Duration;

use palyra_agent::{ArchiveState, RunFilter, RunRow, SessionEventKind, SessionInput, Submitted};
use palyra_common::{InputMode, RunLifecyclePhase, RunStreamBody, SessionId, ToStableError as _};

use crate::support::{Bench, Gate, Setup, is_phase, program, tool_result};

/// Works at a gate for anything that says `work`, and answers everything else at once.
pub(crate) const GATED: &str = r#"
[[script]]
when = "work"
[[script.turn]]
[[script.turn.call]]
tool = "test.slow"
arguments = {}
[[script.turn]]
text = "worked"
[[script]]
[[script.turn]]
text = "You said: "
echo = "user"
"#;

pub(crate) fn input(text: &str, mode: InputMode, id: Option<&str>) -> SessionInput {
    SessionInput {
        text: text.into(),
        mode,
        workspace: None,
        by: "ada".into(),
        given_with: Default::default(),
        input_id: id.map(str::to_owned),
        agent: None,
        from: None,
        beside: Vec::new(),
    }
}

/// A session whose run stands at the gate.
async fn at_the_gate() -> (Bench, Gate, RunRow) {
    at_the_gate_of(Setup::script(GATED)).await
}

async fn at_the_gate_of(mut setup: Setup) -> (Bench, Gate, RunRow) {
    let gate = Gate::reading("test.slow");
    setup.tools = vec![Arc::new(gate.clone())];
    let bench = setup.start().await;
    let (session, _) = bench.engine.resolve_session("ada", "s", None).await.unwrap();
    let first = SessionInput {
        workspace: Some(bench.directory.path().join("work").display().to_string()),
        ..input("work", InputMode::FollowUp, Some("first"))
    };
    let Submitted::Started(run) = bench.engine.submit_input(session.session_id, first).await.unwrap() else {
        panic!("nothing was at work")
    };
    gate.reached(1).await;
    (bench, gate, run)
}

/// The runs of a session, oldest first, once there are so many and all of them are over.
pub(crate) async fn runs_when_over(bench: &Bench, session_id: SessionId, count: usize) -> Vec<RunRow> {
    let filter = RunFilter { session_id: Some(session_id), limit: 100, ..RunFilter::default() };
    let all = async {
        loop {
            let mut runs = bench.engine.runs(filter.clone()).await.unwrap();
            let queued = bench.engine.queued_inputs(session_id).await.unwrap();
            if runs.len() >= count && queued.is_empty() && runs.iter().all(|run| run.phase.is_terminal()) {
                runs.sort_by_key(|run| (run.created_at, run.run_id));
                return runs;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.expect("the queue is worked off")
}

#[tokio::test]
async fn follow_ups_become_runs_one_after_the_other() {
    let (bench, gate, run) = at_the_gate().await;
    let session = run.session_id;
    for (text, place) in [("two", 1), ("three", 2)] {
        let submitted = bench.engine.submit_input(session, input(text, InputMode::FollowUp, Some(text))).await.unwrap();
        assert_eq!(submitted, Submitted::Queued { input_id: text.into(), position: place });
    }
    let filter = RunFilter { session_id: Some(session), limit: 10, ..RunFilter::default() };
    assert_eq!(bench.engine.runs(filter).await.unwrap().len(), 1, "one run is at work");
    gate.open();
    let runs = runs_when_over(&bench, session, 3).await;
    let prompts: Vec<_> = runs.iter().map(|run| run.prompt.as_str()).collect();
    assert_eq!(prompts, ["work", "two", "three"]);
    assert_eq!(runs[2].owner, "ada");
    assert!(runs.windows(2).all(|pair| pair[0].ended_at.unwrap() <= pair[1].created_at), "{runs:#?}");
    let spec = bench.engine.replay(runs[2].run_id).await.unwrap().machine.spec().clone();
    assert_eq!(spec.history.len(), 2, "the queue's runs know of each other");
    assert_eq!(bench.engine.session(session).await.unwrap().runs, 3);
}

#[tokio::test]
async fn what_was_collected_becomes_one_run() {
    let (bench, gate, run) = at_the_gate().await;
    let session = run.session_id;
    for (text, mode) in [
        ("apples", InputMode::Collect),
        ("a question apart", InputMode::FollowUp),
        ("pears", InputMode::Collect),
        ("plums", InputMode::Collect),
    ] {
        bench.engine.submit_input(session, input(text, mode, None)).await.unwrap();
    }
    gate.open();
    let runs = runs_when_over(&bench, session, 3).await;
    let prompts: Vec<_> = runs.iter().map(|run| run.prompt.as_str()).collect();
    assert_eq!(prompts, ["work", "apples\n\npears\n\nplums", "a question apart"]);
}

#[tokio::test]
async fn steering_goes_into_the_run_after_its_tools() {
    let (bench, gate, run) = at_the_gate().await;
    let submitted =
        bench.engine.submit_input(run.session_id, input("mind the gap", InputMode::Steer, Some("s"))).await.unwrap();
    assert!(matches!(&submitted, Submitted::Steered(steered) if steered.run_id == run.run_id));
    gate.open();
    let (row, events) = bench.finish(run.run_id).await;
    assert_eq!(row.answer.unwrap(), "You said: mind the gap");
    assert!(tool_result(&events, "t1c1").ok, "the tool was not stopped");
    let again = input("mind the gap", InputMode::Steer, Some("s"));
    let again = bench.engine.submit_input(run.session_id, again).await.unwrap();
    assert!(matches!(again, Submitted::Steered(steered) if steered.run_id == run.run_id), "it is the same input");
    assert_eq!(runs_when_over(&bench, run.session_id, 1).await.len(), 1);
}

#[tokio::test]
async fn an_interruption_stops_what_is_under_way() {
    let (bench, _gate, run) = at_the_gate().await;
    let submitted = bench.engine.submit_input(run.session_id, input("stop that", InputMode::Interrupt, None)).await;
    assert!(matches!(submitted.unwrap(), Submitted::Steered(_)));
    let (row, events) = bench.finish(run.run_id).await;
    assert_eq!(row.answer.unwrap(), "You said: stop that");
    assert_eq!(tool_result(&events, "t1c1").error.unwrap().code, "tool_cancelled");
}

#[tokio::test]
async fn an_interruption_lets_a_held_run_go_on() {
    let (bench, gate, run) = at_the_gate().await;
    bench.engine.pause(run.run_id, "ada").await.unwrap();
    bench.engine.submit_input(run.session_id, input("go on", InputMode::Interrupt, None)).await.unwrap();
    gate.open();
    let (row, _) = bench.finish(run.run_id).await;
    assert_eq!(row.answer.unwrap(), "You said: go on");
}

#[tokio::test]
async fn with_nothing_at_work_every_mode_begins_a_run() {
    let (bench, gate, run) = at_the_gate().await;
    gate.open();
    bench.finish(run.run_id).await;
    for mode in InputMode::ALL {
        let submitted = bench.engine.submit_input(run.session_id, input("hello", *mode, None)).await.unwrap();
        let Submitted::Started(started) = submitted else { panic!("{mode}: {submitted:?}") };
        let (row, _) = bench.finish(started.run_id).await;
        assert_eq!(row.answer.unwrap(), "You said: hello");
    }
}

#[tokio::test]
async fn what_waits_can_be_seen_and_taken_back() {
    let (bench, gate, run) = at_the_gate().await;
    let session = run.session_id;
    for id in ["a", "b"] {
        bench.engine.submit_input(session, input(id, InputMode::FollowUp, Some(id))).await.unwrap();
    }
    bench.engine.withdraw_input(session, "a", "ada").await.unwrap();
    let again = bench.engine.withdraw_input(session, "a", "ada").await.unwrap_err();
    assert_eq!(again.to_stable().code, "input_not_found");
    let waiting = bench.engine.queued_inputs(session).await.unwrap();
    assert_eq!(waiting.iter().map(|input| input.text.as_str()).collect::<Vec<_>>(), ["b"]);
    gate.open();
    let runs = runs_when_over(&bench, session, 2).await;
    assert_eq!(runs[1].prompt, "b");
    let taken = bench.engine.withdraw_input(session, "b", "ada").await.unwrap_err();
    assert_eq!(taken.to_stable().code, "input_not_found");
}

#[tokio::test]
async fn the_same_input_is_taken_once() {
    let (bench, gate, run) = at_the_gate().await;
    let session = run.session_id;
    let first = bench.engine.submit_input(session, input("work", InputMode::FollowUp, Some("first"))).await.unwrap();
    assert!(matches!(first, Submitted::Started(started) if started.run_id == run.run_id));
    let other = bench.engine.submit_input(session, input("other", InputMode::FollowUp, Some("first"))).await;
    assert_eq!(other.unwrap_err().to_stable().code, "idempotency_conflict");
    for _ in 0..2 {
        let queued = bench.engine.submit_input(session, input("two", InputMode::FollowUp, Some("q"))).await.unwrap();
        assert_eq!(queued, Submitted::Queued { input_id: "q".into(), position: 1 });
    }
    gate.open();
    assert_eq!(runs_when_over(&bench, session, 2).await.len(), 2);
}

#[tokio::test]
async fn an_input_that_cannot_become_a_run_does_not_hold_up_the_rest() {
    let (bench, gate, run) = at_the_gate().await;
    let session = run.session_id;
    for text in ["see @file:gone.md", "the rest"] {
        bench.engine.submit_input(session, input(text, InputMode::FollowUp, None)).await.unwrap();
    }
    gate.open();
    let runs = runs_when_over(&bench, session, 2).await;
    assert_eq!(runs[1].prompt, "the rest");
    let account = bench.engine.explain_session(session).await.unwrap();
    let failed = account.events.iter().find_map(|event| match &event.what {
        SessionEventKind::InputsFailed { error, .. } => Some(error.code.clone()),
        _ => None,
    });
    assert_eq!(failed.unwrap(), "file_reference_invalid");
    let refused = bench.engine.submit_input(session, input("see @file:gone.md", InputMode::FollowUp, None)).await;
    assert_eq!(refused.unwrap_err().to_stable().code, "file_reference_invalid", "with nobody before it, it is told");
}

#[tokio::test]
async fn the_queue_of_an_archived_session_waits() {
    let (bench, gate, run) = at_the_gate().await;
    let session = run.session_id;
    bench.engine.submit_input(session, input("later", InputMode::FollowUp, None)).await.unwrap();
    bench.engine.archive_session(session, ArchiveState::Archived, "ada", None).await.unwrap();
    let refused = bench.engine.submit_input(session, input("more", InputMode::FollowUp, None)).await.unwrap_err();
    assert_eq!(refused.to_stable().code, "session_archived");
    gate.open();
    bench.finish(run.run_id).await;
    assert_eq!(bench.engine.queued_inputs(session).await.unwrap().len(), 1);
    bench.engine.archive_session(session, ArchiveState::Active, "ada", None).await.unwrap();
    assert_eq!(runs_when_over(&bench, session, 2).await[1].prompt, "later");
}

#[tokio::test]
async fn a_queue_takes_only_so_much() {
    let (bench, _gate, run) = at_the_gate().await;
    let submit = async |n: u32| {
        let input = input("more", InputMode::FollowUp, Some(&n.to_string()));
        bench.engine.submit_input(run.session_id, input).await
    };
    for n in 0..256 {
        submit(n).await.unwrap();
    }
    let full = submit(256).await.unwrap_err().to_stable();
    assert_eq!((full.code.as_str(), full.retryable), ("input_queue_full", true));
    bench.engine.withdraw_input(run.session_id, "7", "ada").await.unwrap();
    assert!(matches!(submit(256).await.unwrap(), Submitted::Queued { position: 256, .. }));
    assert!(matches!(submit(3).await.unwrap(), Submitted::Queued { position: 4, .. }), "what is there is there");
}

#[tokio::test]
async fn without_a_directory_or_text_nothing_is_taken() {
    let bench = Setup::script(GATED).start().await;
    let session = bench.engine.resolve_session("ada", "s", None).await.unwrap().0.session_id;
    for (text, code) in [("hello", "workspace_missing"), (" ", "prompt_empty")] {
        let error = bench.engine.submit_input(session, input(text, InputMode::FollowUp, None)).await.unwrap_err();
        assert_eq!(error.to_stable().code, code);
    }
    let error = bench.engine.submit_input(SessionId::generate(), input("x", InputMode::FollowUp, None)).await;
    assert_eq!(error.unwrap_err().to_stable().code, "session_not_found");
    assert!(bench.engine.queued_inputs(session).await.unwrap().is_empty());
}

#[tokio::test]
async fn follow_ups_wait_for_an_approval_too() {
    let script = r#"
[[script]]
when = "write"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[script.turn]]
text = "written"
[[script]]
turn = [{ text = "next" }]
"#;
    let mut setup = Setup::script(script);
    setup.ask_before = vec!["palyra.fs.write".into()];
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("write it")).await.unwrap();
    let events = bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
    let queued = bench.engine.submit_input(run.session_id, input("then", InputMode::FollowUp, None)).await.unwrap();
    assert!(matches!(queued, Submitted::Queued { position: 1, .. }));
    let asked = events.iter().find_map(|event| match &event.body {
        RunStreamBody::ToolApprovalRequest(request) => Some(request.approval_id),
        _ => None,
    });
    let allow = crate::support::answer(palyra_common::ApprovalDecision::Allow);
    bench.engine.decide_approval(asked.unwrap(), allow).await.unwrap();
    let runs = runs_when_over(&bench, run.session_id, 2).await;
    assert_eq!((runs[0].answer.as_deref(), runs[1].answer.as_deref()), (Some("written"), Some("next")));
}

#[tokio::test]
async fn what_a_run_did_not_read_before_its_limit_begins_the_next_one() {
    let mut setup = Setup::script(GATED);
    setup.limits.max_turns = 1;
    let (bench, gate, run) = at_the_gate_of(setup).await;
    let session = run.session_id;
    bench.engine.submit_input(session, input("later", InputMode::FollowUp, Some("later"))).await.unwrap();
    let steer = || input("mind the gap", InputMode::Steer, Some("s"));
    let steered = bench.engine.submit_input(session, steer()).await.unwrap();
    assert!(matches!(steered, Submitted::Steered(_)));
    // The token that wrote it did not start the run.
    let it = program("local", "token it");
    bench.engine.steer(run.run_id, &it, "to the run itself".into(), InputMode::Steer).await.unwrap();
    gate.open();
    let (row, _) = bench.finish(run.run_id).await;
    assert_eq!(row.reason.unwrap().as_str(), "max_turns");
    let runs = runs_when_over(&bench, session, 4).await;
    let returned = bench.engine.replay(runs[3].run_id).await.unwrap();
    assert_eq!(
        returned.machine.spec().started_with,
        it.with,
        "the run of a message is its author's, not the first run's"
    );
    let prompts: Vec<_> = runs.iter().map(|run| run.prompt.as_str()).collect();
    assert_eq!(prompts, ["work", "later", "mind the gap", "to the run itself"], "each waits where it was given");
    assert_eq!(runs[2].answer.as_deref(), Some("You said: mind the gap"));
    assert_eq!(runs[3].workspace, run.workspace);
    let again = bench.engine.submit_input(session, steer()).await.unwrap();
    assert!(matches!(again, Submitted::Started(taken) if taken.run_id == runs[2].run_id), "it is the same input");
    let story = bench.engine.explain_session(session).await.unwrap().events;
    let returned = story.iter().filter(|event| matches!(event.what, SessionEventKind::InputsReturned { .. })).count();
    assert_eq!(returned, 1);
    assert_eq!(bench.engine.replay(run.run_id).await.unwrap().difference, None);
}

#[tokio::test]
async fn an_interruption_that_reaches_the_limit_is_not_lost() {
    let mut setup = Setup::script(GATED);
    setup.limits.max_turns = 1;
    let (bench, _gate, run) = at_the_gate_of(setup).await;
    bench.engine.submit_input(run.session_id, input("stop that", InputMode::Interrupt, Some("i"))).await.unwrap();
    let runs = runs_when_over(&bench, run.session_id, 2).await;
    assert_eq!(runs[0].reason.unwrap().as_str(), "max_turns");
    assert_eq!((runs[1].prompt.as_str(), runs[1].answer.as_deref()), ("stop that", Some("You said: stop that")));
}

#[tokio::test]
async fn nothing_begins_behind_whoever_cancels() {
    let (bench, _gate, run) = at_the_gate().await;
    let session = run.session_id;
    bench.engine.submit_input(session, input("mind the gap", InputMode::Steer, Some("s"))).await.unwrap();
    bench.engine.cancel(run.run_id, "ada", None).await.unwrap();
    let runs = runs_when_over(&bench, session, 1).await;
    assert_eq!(runs.len(), 1, "{runs:#?}");
    let story = bench.engine.explain_session(session).await.unwrap().events;
    let failed = story.iter().find_map(|event| match &event.what {
        SessionEventKind::InputsFailed { input_ids, error } => Some((input_ids.clone(), error.code.clone())),
        _ => None,
    });
    assert_eq!(failed, Some((vec!["s".to_owned()], "input_not_delivered".to_owned())));
}
