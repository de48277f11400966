//! Crashes, restarts and a journal that fails for a while.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use palyra_agent::ApprovalFilter;
use palyra_common::{ApprovalDecision, RunLifecyclePhase, ToStableError as _};
use palyra_journal::FaultInjector;

use crate::support::{Hang, Setup, TestTool, answer, is_phase, tool_result};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

const ONCE: &str = "[[turn]]\n[[turn.call]]\ntool = \"test.once\"\narguments = {}\n[[turn]]\necho = \"last_result\"";

fn once(hang: Hang) -> (Setup, Arc<AtomicU32>) {
    let tool = TestTool::new("test.once", hang);
    let calls = Arc::clone(&tool.calls);
    let mut setup = Setup::script(ONCE);
    setup.tools = vec![Arc::new(tool)];
    (setup, calls)
}

/// Starts a run, lets it begin its call, and crashes.
fn crash_in_the_call(hang: Hang) -> (tempfile::TempDir, palyra_common::RunId) {
    let runtime = runtime();
    let (setup, calls) = once(hang);
    let (bench, run_id) = runtime.block_on(async {
        let bench = setup.start().await;
        let run = bench.engine.create_run(bench.task("once")).await.unwrap();
        while calls.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        (bench, run.run_id)
    });
    (bench.crash(runtime), run_id)
}

#[test]
fn an_effect_that_may_have_happened_is_not_repeated_without_asking() {
    for (decision, calls_after) in [(ApprovalDecision::Deny, 0), (ApprovalDecision::Allow, 1)] {
        let (directory, run_id) = crash_in_the_call(Hang::ForEver);
        let (setup, calls) = once(Hang::No);
        runtime().block_on(async {
            let bench = setup.start_in(directory).await;
            bench.follow_until(run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
            assert_eq!(calls.load(Ordering::SeqCst), 0);
            let open = bench.engine.approvals(ApprovalFilter { run_id: Some(run_id), open: Some(true) }).await.unwrap();
            assert!(open[0].reason.contains("outcome is unknown"), "{}", open[0].reason);
            bench.engine.decide_approval(open[0].approval_id, answer(decision)).await.unwrap();
            let (run, events) = bench.finish(run_id).await;
            assert_eq!(run.phase, RunLifecyclePhase::Completed);
            assert_eq!(calls.load(Ordering::SeqCst), calls_after);
            if decision == ApprovalDecision::Allow {
                assert_eq!(tool_result(&events, "t1c1").content, "call 1");
            }
        });
    }
}

/// Starts a run whose tool reports when it begins, and crashes before or after that.
fn crash_around_the_beginning(hang: Hang) -> (tempfile::TempDir, palyra_common::RunId) {
    let runtime = runtime();
    let tool = TestTool::reporting("test.once", hang);
    let reached = Arc::clone(if hang == Hang::BeforeItBegins { &tool.calls } else { &tool.begun });
    let mut setup = Setup::script(ONCE);
    setup.tools = vec![Arc::new(tool)];
    let (bench, run_id) = runtime.block_on(async {
        let bench = setup.start().await;
        let run = bench.engine.create_run(bench.task("once")).await.unwrap();
        while reached.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        (bench, run.run_id)
    });
    (bench.crash(runtime), run_id)
}

#[test]
fn a_call_that_had_not_begun_when_the_daemon_died_is_made_without_asking() {
    for (hang, asks) in [(Hang::BeforeItBegins, false), (Hang::ForEver, true)] {
        let (directory, run_id) = crash_around_the_beginning(hang);
        let tool = TestTool::reporting("test.once", Hang::No);
        let calls = Arc::clone(&tool.calls);
        let mut setup = Setup::script(ONCE);
        setup.tools = vec![Arc::new(tool)];
        runtime().block_on(async {
            let bench = setup.start_in(directory).await;
            if asks {
                bench.follow_until(run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
                assert_eq!(calls.load(Ordering::SeqCst), 0);
                return;
            }
            let (run, events) = bench.finish(run_id).await;
            assert_eq!(run.phase, RunLifecyclePhase::Completed);
            assert_eq!(calls.load(Ordering::SeqCst), 1);
            assert_eq!(tool_result(&events, "t1c1").content, "call 1");
        });
    }
}

#[test]
fn a_run_that_waits_says_nothing_about_a_restart() {
    let runtime = runtime();
    let (mut setup, _) = once(Hang::No);
    setup.script = "[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\narguments = { path = \"a\", content = \"x\" }\n[[turn]]\ntext = \"done\"".to_owned();
    setup.ask_before = vec!["palyra.fs.write".to_owned()];
    let script = setup.script.clone();
    let (bench, run_id, before) = runtime.block_on(async {
        let bench = setup.start().await;
        let run = bench.engine.create_run(bench.task("write")).await.unwrap();
        bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
        let before = bench.engine.last_seq(run.run_id).await.unwrap();
        (bench, run.run_id, before)
    });
    let directory = bench.crash(runtime);
    self::runtime().block_on(async {
        let mut setup = Setup::script(&script);
        setup.ask_before = vec!["palyra.fs.write".to_owned()];
        let bench = setup.start_in(directory).await;
        let open = bench.engine.approvals(ApprovalFilter { run_id: Some(run_id), open: Some(true) }).await.unwrap();
        assert_eq!(bench.engine.last_seq(run_id).await.unwrap(), before);
        bench.engine.decide_approval(open[0].approval_id, answer(ApprovalDecision::Allow)).await.unwrap();
        let (run, _) = bench.finish(run_id).await;
        assert_eq!(run.phase, RunLifecyclePhase::Completed);
        assert_eq!(std::fs::read_to_string(bench.file("a")).unwrap(), "x");
    });
}

#[test]
fn a_repeatable_call_is_simply_begun_again() {
    let script = "[[turn]]\n[[turn.call]]\ntool = \"test.slow\"\narguments = {}\n[[turn]]\ntext = \"done\"";
    let setup = |hang| {
        let tool = TestTool::reading("test.slow", hang);
        let calls = Arc::clone(&tool.calls);
        let mut setup = Setup::script(script);
        setup.tools = vec![Arc::new(tool)];
        (setup, calls)
    };
    let first = runtime();
    let (before, calls) = setup(Hang::ForEver);
    let (bench, run_id) = first.block_on(async {
        let bench = before.start().await;
        let run = bench.engine.create_run(bench.task("read")).await.unwrap();
        while calls.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        (bench, run.run_id)
    });
    let directory = bench.crash(first);
    runtime().block_on(async {
        let (after, calls) = setup(Hang::No);
        let bench = after.start_in(directory).await;
        let (run, _) = bench.finish(run_id).await;
        assert_eq!(run.phase, RunLifecyclePhase::Completed);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    });
}

#[tokio::test]
async fn stopping_lets_a_tool_report_and_leaves_the_run_to_the_next_start() {
    let (setup, _) = once(Hang::No);
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("once")).await.unwrap();
    bench.engine.stop(Duration::from_secs(5)).await;
    let refused = bench.engine.create_run(bench.task("late")).await.unwrap_err();
    assert_eq!(refused.to_stable().code, "daemon_stopping");
    let palyra_dir = bench.directory;
    drop(bench.engine);
    bench.journal.close().await.unwrap();
    let (setup, _) = once(Hang::No);
    let bench = setup.start_in(palyra_dir).await;
    let (row, _) = bench.finish(run.run_id).await;
    assert_eq!(row.phase, RunLifecyclePhase::Completed, "no question was left behind by an orderly stop");
}

/// A journal whose disk is full while the switch is on.
#[derive(Default)]
struct FullDisk(AtomicBool);

impl FaultInjector for FullDisk {
    fn before_commit(&self, _: u64) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_and_holds_running_work_without_losing_it() {
    let disk = Arc::new(FullDisk::default());
    let mut setup = Setup::script("[[turn]]\ntext = \"ok\"\ndelay_ms = 100");
    setup.faults = Some(disk.clone());
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("begin")).await.unwrap();
    disk.0.store(true, Ordering::SeqCst);
    let refused = bench.engine.create_run(bench.task("more")).await.unwrap_err();
    assert_eq!(refused.to_stable().code, "disk_full");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(bench.engine.run(run.run_id).await.unwrap().phase, RunLifecyclePhase::Running);
    disk.0.store(false, Ordering::SeqCst);
    assert_eq!(bench.finish(run.run_id).await.0.phase, RunLifecyclePhase::Completed);
}

#[test]
fn a_run_that_cannot_be_rebuilt_is_ended_and_says_why() {
    let (directory, run_id) = crash_in_the_call(Hang::ForEver);
    std::fs::remove_dir_all(directory.path().join("work")).unwrap();
    let (setup, calls) = once(Hang::No);
    runtime().block_on(async {
        let bench = setup.start_in(directory).await;
        bench.follow_until(run_id, is_phase(RunLifecyclePhase::Failed)).await;
        let run = bench.engine.run(run_id).await.unwrap();
        assert_eq!(run.phase, RunLifecyclePhase::Failed);
        let detail = run.detail.unwrap();
        assert_eq!(detail.code, "run_unrecoverable");
        assert!(detail.message.contains("does not exist"), "{}", detail.message);
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_run_that_cannot_be_rebuilt_is_ended_as_soon_as_the_journal_can_be_written() {
    let (directory, run_id) = crash_in_the_call(Hang::ForEver);
    std::fs::remove_dir_all(directory.path().join("work")).unwrap();
    let disk = Arc::new(FullDisk::default());
    disk.0.store(true, Ordering::SeqCst);
    let (mut setup, _) = once(Hang::No);
    setup.faults = Some(disk.clone());
    runtime().block_on(async {
        let bench = setup.start_in(directory).await;
        while bench.journal.admission().is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(bench.engine.run(run_id).await.unwrap().phase, RunLifecyclePhase::Running);
        disk.0.store(false, Ordering::SeqCst);
        bench.follow_until(run_id, is_phase(RunLifecyclePhase::Failed)).await;
    });
}
