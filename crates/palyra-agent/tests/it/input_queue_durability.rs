//! What waits in a session survives a crash and a stop, and is worked off once.

use std::sync::Arc;
use std::time::Duration;

use palyra_agent::{SessionInput, Submitted};
use palyra_common::{InputMode, SessionId};
use tempfile::TempDir;

use crate::input_queue::{GATED, input, runs_when_over};
use crate::support::{Gate, Setup};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn gated() -> (Setup, Gate) {
    let gate = Gate::reading("test.slow");
    let mut setup = Setup::script(GATED);
    setup.tools = vec![Arc::new(gate.clone())];
    (setup, gate)
}

#[derive(Clone, Copy)]
enum End {
    Crash,
    Stop,
}

/// Leaves a run at the gate with three inputs behind it.
fn leave(end: End) -> (TempDir, SessionId) {
    let first = runtime();
    let (setup, gate) = gated();
    let (bench, session) = first.block_on(async {
        let bench = setup.start().await;
        let session = bench.engine.resolve_session("ada", "s", None).await.unwrap().0.session_id;
        let workspace = Some(bench.directory.path().join("work").display().to_string());
        let work = SessionInput { workspace, ..input("work", InputMode::FollowUp, Some("w")) };
        bench.engine.submit_input(session, work).await.unwrap();
        gate.reached(1).await;
        for (text, mode) in [("one", InputMode::FollowUp), ("two", InputMode::Collect), ("three", InputMode::Collect)] {
            bench.engine.submit_input(session, input(text, mode, Some(text))).await.unwrap();
        }
        if matches!(end, End::Stop) {
            gate.open();
            bench.engine.stop(Duration::from_secs(5)).await;
        }
        (bench, session)
    });
    (bench.crash(first), session)
}

#[test]
fn the_queue_survives_a_crash_and_a_stop_and_is_worked_off_once() {
    for end in [End::Crash, End::Stop] {
        let (directory, session) = leave(end);
        runtime().block_on(async {
            let (setup, gate) = gated();
            gate.open();
            let bench = setup.start_in(directory).await;
            let runs = runs_when_over(&bench, session, 3).await;
            let prompts: Vec<_> = runs.iter().map(|run| run.prompt.as_str()).collect();
            assert_eq!(prompts, ["work", "one", "two\n\nthree"]);
            let again = bench.engine.submit_input(session, input("one", InputMode::FollowUp, Some("one"))).await;
            assert!(matches!(again.unwrap(), Submitted::Started(run) if run.run_id == runs[1].run_id));
        });
    }
}
