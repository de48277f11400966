//! Crashes while hooks are asked: every phase is asked again, under the same id.

use std::sync::Arc;
use std::time::Duration;

use palyra_agent::HookOccurrence;
use palyra_common::{HookDecision, HookEvent, RunId, RunLifecyclePhase};
use tempfile::TempDir;

use crate::hooks_support::{Does, Hooks, binding, of_kind};
use crate::support::{Hang, Setup, TestTool};

const CALL: &str = "[[turn]]\n[[turn.call]]\ntool = \"test.once\"\narguments = {}\n[[turn]]\ntext = \"done\"";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn setup(hooks: &Arc<Hooks>) -> Setup {
    let mut setup = Setup::script(CALL).hooks(hooks);
    setup.tools = vec![Arc::new(TestTool::reading("test.once", Hang::No))];
    setup
}

/// Starts a run, lets it get to its hook, and crashes there.
fn crash_in_the_hook(event: HookEvent) -> (TempDir, RunId, HookOccurrence) {
    let runtime = runtime();
    let hooks = Hooks::doing(&[("h", Does::Hang)]);
    let (bench, run_id) = runtime.block_on(async {
        let bench = setup(&hooks).start().await;
        let mut slow = binding("h", event);
        slow.deadline_ms = 30_000;
        bench.bind(vec![slow]).await;
        let run = bench.engine.create_run(bench.task("go")).await.unwrap();
        hooks.reached(1).await;
        (bench, run.run_id)
    });
    (bench.crash(runtime), run_id, hooks.told()[0].1.clone())
}

const PHASES: [HookEvent; 5] = [
    HookEvent::RunBeforeRun,
    HookEvent::RunBeforeTool,
    HookEvent::RunAfterTool,
    HookEvent::RunBeforeDelivery,
    HookEvent::RunAfterRun,
];

#[test]
fn hooks_are_asked_again_after_a_crash_in_every_phase() {
    for event in PHASES {
        let (directory, run_id, before) = crash_in_the_hook(event);
        runtime().block_on(async {
            let hooks = Hooks::doing(&[("h", Does::Say(HookDecision::Annotate))]);
            let bench = setup(&hooks).start_in(directory).await;
            let (run, _) = bench.finish(run_id).await;
            assert_eq!((run.phase, run.answer.as_deref()), (RunLifecyclePhase::Completed, Some("done")), "{event}");
            hooks.reached(1).await;
            let again = hooks.told()[0].1.clone();
            assert_eq!((&again.id, &again.event), (&before.id, &before.event));
            assert_eq!(again.payload, before.payload, "{event}");
            if event == HookEvent::RunAfterRun {
                let events = bench.noted(run_id).await;
                assert_eq!(of_kind(&events, "hooks.noted").len(), 1);
            }
            assert_eq!(bench.engine.replay(run_id).await.unwrap().difference, None);
            assert_eq!(hooks.told().len(), 1);
        });
    }
}

#[test]
fn a_hook_that_is_gone_after_the_crash_is_not_waited_for() {
    for event in PHASES {
        let (directory, run_id, _) = crash_in_the_hook(event);
        runtime().block_on(async {
            // The plugin cannot be run any more: what comes before an effect fails closed.
            let hooks = Hooks::doing(&[("h", Does::Fail(palyra_agent::HookFailure::Unavailable("removed".into())))]);
            let bench = setup(&hooks).start_in(directory).await;
            let (run, _) = bench.finish(run_id).await;
            let refused = matches!(event, HookEvent::RunBeforeRun | HookEvent::RunBeforeDelivery);
            let expected = if refused { RunLifecyclePhase::Failed } else { RunLifecyclePhase::Completed };
            assert_eq!(run.phase, expected, "{event}");
        });
    }
}

#[tokio::test]
async fn an_orderly_stop_leaves_hooks_to_the_next_start() {
    for event in PHASES {
        let hooks = Hooks::doing(&[("h", Does::Hang)]);
        let bench = setup(&hooks).start().await;
        let mut slow = binding("h", event);
        slow.deadline_ms = 30_000;
        bench.bind(vec![slow]).await;
        let run = bench.engine.create_run(bench.task("go")).await.unwrap();
        hooks.reached(1).await;
        let stopping = bench.engine.stop(Duration::from_secs(20));
        tokio::time::timeout(Duration::from_secs(10), stopping).await.expect("stopping does not wait for hooks");
        drop(bench.engine);
        bench.journal.close().await.unwrap();
        let again = Hooks::doing(&[]);
        let bench = setup(&again).start_in(bench.directory).await;
        let (row, _) = bench.finish(run.run_id).await;
        assert_eq!(row.phase, RunLifecyclePhase::Completed, "{event}");
        again.reached(1).await;
        assert_eq!(again.told()[0].1.id, hooks.told()[0].1.id);
        bench.engine.stop(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn bindings_survive_a_restart() {
    let bench = Setup::script("[[turn]]\ntext = \"done\"").start().await;
    bench.bind(vec![binding("h", HookEvent::RunBeforeRun)]).await;
    let before = bench.engine.hook_bindings().await.unwrap();
    bench.engine.stop(Duration::from_secs(5)).await;
    drop(bench.engine);
    bench.journal.close().await.unwrap();
    let hooks = Hooks::doing(&[("h", Does::Say(HookDecision::Block))]);
    let bench = Setup::script("[[turn]]\ntext = \"done\"").hooks(&hooks).start_in(bench.directory).await;
    assert_eq!(bench.engine.hook_bindings().await.unwrap(), before);
    assert_eq!(bench.run("go").await.0.phase, RunLifecyclePhase::Failed);
}
