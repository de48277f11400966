//! Cancellation reaches models and tools, also tools that do not listen.

use std::sync::Arc;
use std::time::Instant;

use palyra_common::{RunLifecyclePhase, RunStreamBody, TerminationReason};

use crate::support::{Hang, Setup, TestTool, tool_result};

fn calling(tool: &str) -> String {
    format!("[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{}}\n[[turn]]\ntext = \"done\"")
}

async fn cancel_while_it_hangs(hang: Hang) -> (Vec<palyra_common::RunStreamEvent>, std::time::Duration) {
    let mut setup = Setup::script(&calling("test.slow"));
    setup.tools = vec![Arc::new(TestTool::new("test.slow", hang))];
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("hang")).await.unwrap();
    bench
        .follow_until(
            run.run_id,
            |event| matches!(&event.body, RunStreamBody::JournalEvent(event) if event.kind == "tool.intent"),
        )
        .await;
    let began = Instant::now();
    bench.engine.cancel(run.run_id, "me", Some("enough".into())).await.unwrap();
    let (row, events) = bench.finish(run.run_id).await;
    assert_eq!((row.phase, row.reason), (RunLifecyclePhase::Aborted, Some(TerminationReason::Cancellation)));
    // Whatever became of the call, the run ended because somebody wanted it to.
    assert_eq!(row.detail.map(|detail| detail.code).as_deref(), Some("cancelled"));
    (events, began.elapsed())
}

#[tokio::test]
async fn a_tool_that_listens_is_cancelled_with_its_own_word() {
    let (events, took) = cancel_while_it_hangs(Hang::UntilCancelled).await;
    let result = tool_result(&events, "t1c1");
    assert_eq!(result.error.unwrap().code, "tool_cancelled");
    println!("cancelled in {took:?}");
}

#[tokio::test]
async fn a_tool_that_does_not_listen_is_left_behind_with_an_unknown_outcome() {
    let (events, took) = cancel_while_it_hangs(Hang::ForEver).await;
    let result = tool_result(&events, "t1c1");
    assert_eq!(result.error.unwrap().code, "tool_outcome_unknown");
    println!("left behind in {took:?}");
}

#[tokio::test]
async fn a_model_that_is_speaking_is_cancelled() {
    let bench = Setup::script("[[turn]]\ntext = \"slow\"\ndelay_ms = 60000").start().await;
    let run = bench.engine.create_run(bench.task("wait")).await.unwrap();
    bench.engine.cancel(run.run_id, "me", None).await.unwrap();
    assert_eq!(bench.finish(run.run_id).await.0.phase, RunLifecyclePhase::Aborted);
}

#[tokio::test]
async fn working_time_is_limited() {
    let mut setup = Setup::script("[[turn]]\ntext = \"slow\"\ndelay_ms = 60000");
    setup.limits.wall_clock_ms = 100;
    let bench = setup.start().await;
    let (row, _) = bench.run("wait").await;
    assert_eq!((row.phase, row.reason), (RunLifecyclePhase::Failed, Some(TerminationReason::WallClock)));
}
