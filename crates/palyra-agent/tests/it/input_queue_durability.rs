//! What waits in a session survives a crash and a stop, and is worked off once.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use palyra_agent::{NewRun, NewSession, SessionInput, SessionSettings, Submitted};
use palyra_common::{InputMode, RunLifecyclePhase, SessionId};
use tempfile::TempDir;

use crate::input_queue::{GATED, input, runs_when_over};
use crate::support::{Bench, Gate, Setup};

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

const ECHO: &str = "[[turn]]\ntext = \"You said: \"\necho = \"user\"\ndelay_ms = 3";

/// Everything that was said to the runs of a session.
async fn said(bench: &Bench, session: SessionId) -> Vec<String> {
    let export = bench.engine.export_session(session).await.unwrap();
    let texts = export.runs.iter().flat_map(|run| std::iter::once(&run.prompt).chain(&run.messages));
    let mut said: Vec<String> = texts.flat_map(|text| text.split("\n\n").map(str::to_owned)).collect();
    said.sort();
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_write_at_once_are_each_heard_once_by_one_run_at_a_time() {
    let bench = Setup::script(ECHO).start().await;
    let session = bench.engine.resolve_session("ada", "s", None).await.unwrap().0.session_id;
    let workspace = bench.directory.path().join("work").display().to_string();
    let settings = SessionSettings { workspace: Some(workspace), ..SessionSettings::default() };
    bench.engine.set_session_settings(session, settings, "ada", None).await.unwrap();
    let modes = [InputMode::FollowUp, InputMode::Collect, InputMode::Steer];
    let writers = (0..6).map(|writer| {
        let engine = bench.engine.clone();
        tokio::spawn(async move {
            for (n, mode) in (0..6).zip(modes.iter().cycle().skip(writer)) {
                engine.submit_input(session, input(&format!("w{writer}n{n}"), *mode, None)).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let runs = runs_when_over(&bench, session, 1).await;
    assert!(runs.windows(2).all(|pair| pair[0].ended_at.unwrap() <= pair[1].created_at), "{runs:#?}");
    let mut expected: Vec<String> = (0..6).flat_map(|writer| (0..6).map(move |n| format!("w{writer}n{n}"))).collect();
    expected.sort();
    assert_eq!(said(&bench, session).await, expected);
}

#[tokio::test]
async fn what_was_begun_goes_on_when_whoever_asked_goes_away() {
    let bench = Setup::script(ECHO).start().await;
    let (session, _) = bench.engine.resolve_session("ada", "s", None).await.unwrap();
    let id = session.session_id;
    let run = NewRun { session_id: Some(id), ..bench.task("asked and gone") };
    assert!(bench.engine.create_run(run).now_or_never().is_none(), "it was begun and dropped");
    let runs = runs_when_over(&bench, id, 1).await;
    assert_eq!(runs[0].prompt, "asked and gone");
    assert!(bench.engine.submit_input(id, input("me too", InputMode::FollowUp, None)).now_or_never().is_none());
    assert!(bench.engine.rename_session(id, "gone".into(), "ada", None).now_or_never().is_none());
    assert_eq!(runs_when_over(&bench, id, 2).await[1].prompt, "me too");
    assert_eq!(bench.engine.rename_session(id, "gone".into(), "ada", None).await.unwrap().version, 4);
}

#[test]
fn a_client_that_repeats_itself_after_a_crash_anywhere_is_heard_once() {
    let id = SessionId::generate();
    let texts = ["one", "three", "two"];
    for crash_after in [0, 2, 5, 9, 14, 25, 60] {
        let first = runtime();
        let bench = first.block_on(async {
            let bench = Setup::script(ECHO).start().await;
            let workspace = bench.directory.path().join("work").display().to_string();
            let new = NewSession {
                session_id: Some(id),
                owner: "ada".into(),
                settings: SessionSettings { workspace: Some(workspace), ..SessionSettings::default() },
                ..NewSession::default()
            };
            bench.engine.create_session(new).await.unwrap();
            let engine = bench.engine.clone();
            tokio::spawn(async move {
                for text in texts {
                    // The crash cuts this short; whatever was not answered is sent again.
                    let _ = engine.submit_input(id, input(text, InputMode::FollowUp, Some(text))).await;
                }
            });
            tokio::time::sleep(Duration::from_millis(crash_after)).await;
            bench
        });
        let directory = bench.crash(first);
        runtime().block_on(async {
            let bench = Setup::script(ECHO).start_in(directory).await;
            for text in texts {
                bench.engine.submit_input(id, input(text, InputMode::FollowUp, Some(text))).await.unwrap();
            }
            let runs = runs_when_over(&bench, id, 3).await;
            assert!(runs.iter().all(|run| run.phase == RunLifecyclePhase::Completed), "{runs:#?}");
            assert_eq!(said(&bench, id).await, texts);
        });
    }
}
