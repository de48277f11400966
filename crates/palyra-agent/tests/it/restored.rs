//! States that were restored from a backup: nothing goes on by itself, whatever it was doing when the backup was made.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use palyra_agent::{ApprovalFilter, Resumption, SessionInput, Submitted};
use palyra_common::{ApprovalDecision, Clock as _, InputMode, RunLifecyclePhase, SystemClock};
use tempfile::TempDir;

use crate::input_queue::{GATED, input, runs_when_over};
use crate::support::{Bench, Gate, Hang, Setup, TestTool, actor, answer, is_phase};

const ONCE: &str = "[[turn]]\n[[turn.call]]\ntool = \"test.once\"\narguments = {}\n[[turn]]\ntext = \"done\"";

fn with_tool(tool: TestTool) -> Setup {
    let mut setup = Setup::script(ONCE);
    setup.tools = vec![Arc::new(tool)];
    setup
}

/// The state as it is now, restored to a directory of its own. The workspace is that of the original, which has to stay.
pub(crate) async fn restored(bench: &Bench) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    bench.journal.backup(home.path().join("backup"), Vec::new()).await.unwrap();
    palyra_journal::restore(&home.path().join("backup"), &state(&home), SystemClock.now()).unwrap();
    home
}

pub(crate) fn state(home: &TempDir) -> std::path::PathBuf {
    Path::join(home.path(), "state")
}

/// Ends an engine in good order, so that another one can start on its state.
pub(crate) async fn stop(bench: Bench) -> TempDir {
    let Bench { engine, journal, directory } = bench;
    engine.stop(std::time::Duration::from_secs(5)).await;
    drop(engine);
    journal.close().await.unwrap();
    directory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_flight_is_not_made_again_without_asking_whether_or_not_it_had_begun() {
    let before_it_begins = TestTool::reporting("test.once", Hang::BeforeItBegins);
    let after_it_began = TestTool::reporting("test.once", Hang::UntilCancelled);
    let silent = TestTool::new("test.once", Hang::UntilCancelled);
    for (tool, reports) in [(before_it_begins, true), (after_it_began, true), (silent, false)] {
        let calls = Arc::clone(&tool.calls);
        let original = with_tool(tool).start().await;
        let run = original.engine.create_run(original.task("once")).await.unwrap();
        while calls.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let home = restored(&original).await;

        let again = || {
            if reports { TestTool::reporting("test.once", Hang::No) } else { TestTool::new("test.once", Hang::No) }
        };
        let (first, second) = (again(), again());
        let (calls, later_calls) = (Arc::clone(&first.calls), Arc::clone(&second.calls));
        let bench = with_tool(first).start_in(home).await;
        bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::Paused)).await;
        let open = ApprovalFilter { run_id: Some(run.run_id), open: Some(true) };
        let asked = bench.engine.approvals(open).await.unwrap();
        assert!(asked[0].reason.contains("restored from a backup"), "{}", asked[0].reason);
        let home = stop(bench).await;
        assert_eq!(calls.load(Ordering::SeqCst), 0, "it happened again without anybody's word");

        palyra_journal::accept_restore(&state(&home)).unwrap();
        let bench = with_tool(second).start_in(home).await;
        let before = bench.engine.last_seq(run.run_id).await.unwrap();
        bench.engine.resume(run.run_id, &actor("ada"), Resumption::default()).await.unwrap();
        let waiting = |event: &palyra_common::RunStreamEvent| {
            event.seq > before && is_phase(RunLifecyclePhase::WaitingForApproval)(event)
        };
        bench.follow_until(run.run_id, waiting).await;
        assert_eq!(later_calls.load(Ordering::SeqCst), 0, "resuming the run answers no question");
        bench.engine.decide_approval(asked[0].approval_id, answer(ApprovalDecision::Allow)).await.unwrap();
        assert_eq!(bench.finish(run.run_id).await.0.phase, RunLifecyclePhase::Completed);
        assert_eq!(later_calls.load(Ordering::SeqCst), 1, "a person said so");
    }
}

fn gated() -> (Setup, Gate) {
    let gate = Gate::reading("test.slow");
    let mut setup = Setup::script(GATED);
    setup.tools = vec![Arc::new(gate.clone())];
    (setup, gate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_queue_waits_also_when_something_new_comes_to_its_session() {
    let (setup, gate) = gated();
    let original = setup.start().await;
    let workspace = Some(original.directory.path().join("work").display().to_string());
    let submit = |bench: &Bench, session, text: &'static str| {
        let given = SessionInput { workspace: workspace.clone(), ..input(text, InputMode::FollowUp, Some(text)) };
        let engine = bench.engine.clone();
        async move { engine.submit_input(session, given).await.unwrap() }
    };
    let session = original.engine.resolve_session("ada", "s", None).await.unwrap().0.session_id;
    let other = original.engine.resolve_session("ada", "other", None).await.unwrap().0.session_id;
    let Submitted::Started(run) = submit(&original, session, "work").await else { panic!("nothing was at work") };
    gate.reached(1).await;
    submit(&original, session, "one").await;
    let home = restored(&original).await;

    let (setup, gate) = gated();
    gate.open();
    let bench = setup.start_in(home).await;
    bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::Paused)).await;
    bench.engine.cancel(run.run_id, "ada", None).await.unwrap();
    bench.finish(run.run_id).await;
    assert!(matches!(submit(&bench, session, "two").await, Submitted::Queued { .. }));
    assert!(matches!(submit(&bench, other, "elsewhere").await, Submitted::Started(_)), "others go on");
    runs_when_over(&bench, other, 1).await;
    let waiting = bench.engine.queued_inputs(session).await.unwrap();
    assert_eq!(waiting.iter().map(|input| input.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let home = stop(bench).await;

    palyra_journal::accept_restore(&state(&home)).unwrap();
    let bench = gated().0.start_in(home).await;
    let prompts: Vec<_> = runs_when_over(&bench, session, 3).await.into_iter().map(|run| run.prompt).collect();
    assert_eq!(prompts, ["work", "one", "two"]);
}
