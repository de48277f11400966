//! Clocks that somebody sets, and daemons that were away: no deadline of a run is met by either.

use std::sync::Arc;
use std::time::Duration;

use palyra_agent::machine::{AWAKE_GRACE, ClockGap};
use palyra_agent::{ApprovalFilter, CLOCK_STEPPED, ClockStepped, RunLimits};
use palyra_common::{
    ApprovalDecision, FixedClock, InputMode, RunId, RunLifecyclePhase, RunStreamBody, RunStreamEvent, Timestamp,
};

use crate::support::{Bench, Gate, Setup, actor, answer, is_phase};

const GATED: &str = "[[turn]]\n[[turn.call]]\ntool = \"test.slow\"\narguments = {}\n[[turn]]\ntext = \"done\"";
const ASKING: &str = "[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\narguments = { path = \"a\", content = \"x\" }\n[[turn]]\ntext = \"done\"";
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: u64 = 60 * 1000;
const HOUR: i64 = 60 * 60 * 1000;
const MONTH: i64 = 30 * 24 * HOUR;

fn clock() -> FixedClock {
    FixedClock::at(Timestamp(1_794_700_000_000))
}

fn adjusted(events: &[RunStreamEvent]) -> Vec<(i64, String)> {
    let adjusted = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::JournalEvent(event) if event.kind == "run.clock_adjusted" => {
            let fields = &event.payload["input"]["clock_adjusted"];
            Some((fields["by_ms"].as_i64().unwrap(), fields["gap"].as_str().unwrap().to_owned()))
        }
        _ => None,
    };
    events.iter().filter_map(adjusted).collect()
}

/// A run that is at work in a tool, with a minute to work.
async fn at_work(clock: &FixedClock) -> (Bench, Gate, RunId) {
    let gate = Gate::reading("test.slow");
    let mut setup = Setup::script(GATED);
    setup.clock = Arc::new(clock.clone());
    setup.tools = vec![Arc::new(gate.clone())];
    setup.limits = RunLimits { wall_clock_ms: MINUTE, ..RunLimits::default() };
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("work")).await.unwrap();
    gate.reached(1).await;
    (bench, gate, run.run_id)
}

#[tokio::test]
async fn setting_the_clock_ends_no_run_that_is_at_work() {
    for step in [HOUR, MONTH, -HOUR, -MONTH] {
        let clock = clock();
        let (bench, gate, run_id) = at_work(&clock).await;
        clock.step(step);
        // Anything that happens to the run makes its driver look at its deadlines.
        bench.engine.steer(run_id, &actor("local"), "go on".to_owned(), InputMode::FollowUp).await.unwrap();
        gate.open();
        let (run, events) = bench.finish(run_id).await;
        assert_eq!(run.phase, RunLifecyclePhase::Completed, "{step}: {:?}", run.detail);
        assert_eq!(adjusted(&events), [(step, "clock_set".to_owned())]);
    }
}

#[tokio::test]
async fn time_that_really_passes_ends_a_run_whatever_the_clock_was_set_to() {
    let clock = clock();
    let (bench, _gate, run_id) = at_work(&clock).await;
    clock.step(-MONTH);
    clock.advance(Duration::from_millis(2 * MINUTE));
    bench.engine.steer(run_id, &actor("local"), "go on".to_owned(), InputMode::FollowUp).await.unwrap();
    let (run, events) = bench.finish(run_id).await;
    assert_eq!(run.phase, RunLifecyclePhase::Failed);
    assert_eq!(run.detail.unwrap().code, "wall_clock");
    assert_eq!(adjusted(&events), [(-MONTH, "clock_set".to_owned())]);
}

#[tokio::test]
async fn a_run_has_a_while_left_after_the_machine_wakes_up() {
    let clock = clock();
    let (bench, gate, run_id) = at_work(&clock).await;
    // A second of its minute is left.
    clock.advance(Duration::from_millis(MINUTE) - SECOND);
    clock.suspend(Duration::from_secs(3600));
    bench.engine.steer(run_id, &actor("local"), "go on".to_owned(), InputMode::FollowUp).await.unwrap();
    clock.advance(AWAKE_GRACE - SECOND);
    bench.engine.steer(run_id, &actor("local"), "and on".to_owned(), InputMode::FollowUp).await.unwrap();
    // A deadline that is met ends the run before its tool is done.
    tokio::time::sleep(Duration::from_millis(200)).await;
    gate.open();
    let (run, events) = bench.finish(run_id).await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed, "{:?}", run.detail);
    assert_eq!(adjusted(&events), [(HOUR, "suspended".to_owned())]);
}

#[tokio::test]
async fn a_run_does_not_outlive_the_while_after_the_machine_woke_up() {
    let clock = clock();
    let (bench, _gate, run_id) = at_work(&clock).await;
    clock.advance(Duration::from_millis(MINUTE) - SECOND);
    clock.suspend(Duration::from_secs(3600));
    bench.engine.steer(run_id, &actor("local"), "go on".to_owned(), InputMode::FollowUp).await.unwrap();
    clock.advance(AWAKE_GRACE + SECOND);
    bench.engine.steer(run_id, &actor("local"), "and on".to_owned(), InputMode::FollowUp).await.unwrap();
    let (run, _) = bench.finish(run_id).await;
    assert_eq!((run.phase, run.detail.unwrap().code.as_str()), (RunLifecyclePhase::Failed, "wall_clock"));
}

fn asking(clock: &FixedClock) -> Setup {
    let mut setup = Setup::script(ASKING);
    setup.clock = Arc::new(clock.clone());
    setup.ask_before = vec!["palyra.fs.write".to_owned()];
    setup.limits = RunLimits { approval_timeout_ms: 10 * MINUTE, expire_after_ms: 20 * MINUTE, ..RunLimits::default() };
    setup
}

/// A question that is open; the daemon dies, and the next one starts with a clock that was set in between.
fn restarted_with_a_clock_set_by(step: i64) -> (RunLifecyclePhase, Vec<(i64, String)>) {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let clock = clock();
    let first = runtime();
    let (bench, run_id) = first.block_on(async {
        let bench = asking(&clock).start().await;
        let run = bench.engine.create_run(bench.task("write")).await.unwrap();
        bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
        (bench, run.run_id)
    });
    let directory = bench.crash(first);
    clock.step(step);
    runtime().block_on(async {
        let bench = asking(&clock).start_in(directory).await;
        let open = bench.engine.approvals(ApprovalFilter { run_id: Some(run_id), open: Some(true) }).await.unwrap();
        bench.engine.decide_approval(open[0].approval_id, answer(ApprovalDecision::Allow)).await.unwrap();
        let (run, events) = bench.finish(run_id).await;
        (run.phase, adjusted(&events))
    })
}

#[test]
fn a_question_survives_a_start_with_any_clock() {
    for step in [MONTH, HOUR, -HOUR, -MONTH] {
        let (phase, adjusted) = restarted_with_a_clock_set_by(step);
        assert_eq!(phase, RunLifecyclePhase::Completed, "{step}");
        assert_eq!(adjusted, [(step, "daemon_down".to_owned())], "{step}");
    }
    // Less than the deadline is long, and nearly all of it.
    let (phase, adjusted) = restarted_with_a_clock_set_by(9 * 60 * 1000);
    assert_eq!((phase, adjusted.len()), (RunLifecyclePhase::Completed, 1), "{adjusted:?}");
    // A restart that takes no time worth speaking of leaves no record.
    assert_eq!(restarted_with_a_clock_set_by(1_000), (RunLifecyclePhase::Completed, Vec::new()));
}

#[tokio::test]
async fn a_clock_that_is_set_while_a_question_is_open_lets_nobody_miss_it() {
    for step in [HOUR, MONTH, -MONTH] {
        let clock = clock();
        let bench = asking(&clock).start().await;
        let run = bench.engine.create_run(bench.task("write")).await.unwrap();
        bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
        clock.step(step);
        bench.engine.edit_envelope(run.run_id, &actor("local"), Vec::new(), Vec::new()).await.unwrap();
        let open = ApprovalFilter { run_id: Some(run.run_id), open: Some(true) };
        let open = bench.engine.approvals(open).await.unwrap();
        bench.engine.decide_approval(open[0].approval_id, answer(ApprovalDecision::Allow)).await.unwrap();
        assert_eq!(bench.finish(run.run_id).await.0.phase, RunLifecyclePhase::Completed, "{step}");
    }
}

#[tokio::test]
async fn a_question_can_still_be_answered_after_the_machine_woke_up() {
    let clock = clock();
    let bench = asking(&clock).start().await;
    let run = bench.engine.create_run(bench.task("write")).await.unwrap();
    bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
    clock.advance(Duration::from_millis(10 * MINUTE) - SECOND);
    clock.suspend(Duration::from_secs(3600));
    bench.engine.edit_envelope(run.run_id, &actor("local"), Vec::new(), Vec::new()).await.unwrap();
    clock.advance(AWAKE_GRACE - SECOND);
    // Makes its driver look at the deadline of the question.
    bench.engine.edit_envelope(run.run_id, &actor("local"), Vec::new(), Vec::new()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let open = ApprovalFilter { run_id: Some(run.run_id), open: Some(true) };
    let open = bench.engine.approvals(open).await.unwrap();
    bench.engine.decide_approval(open[0].approval_id, answer(ApprovalDecision::Allow)).await.unwrap();
    let (run, events) = bench.finish(run.run_id).await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed, "{:?}", run.detail);
    assert_eq!(adjusted(&events), [(HOUR, "suspended".to_owned())]);
}

/// What is on record about the clock beside the tapes of runs.
async fn recorded(bench: &Bench) -> Vec<ClockStepped> {
    let all = |reader: &palyra_journal::Reader| reader.range(1, 1_000);
    let records = bench.journal.read(all).await.unwrap();
    let steps = records.iter().filter(|record| record.kind == CLOCK_STEPPED);
    steps.map(|record| serde_json::from_slice(&record.payload).unwrap()).collect()
}

#[tokio::test]
async fn what_happens_to_the_clock_while_nothing_is_at_work_is_on_record() {
    let clock = clock();
    let mut setup = Setup::script(GATED);
    setup.clock = Arc::new(clock.clone());
    let bench = setup.start().await;
    clock.advance(Duration::from_secs(3600));
    let seen = async |step| {
        let seen = async {
            while recorded(&bench).await.last() != Some(&step) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("it is noticed");
    };
    for by_ms in [HOUR, -MONTH] {
        clock.step(by_ms);
        seen(ClockStepped { by_ms, gap: ClockGap::ClockSet }).await;
    }
    clock.suspend(Duration::from_secs(3600));
    seen(ClockStepped { by_ms: HOUR, gap: ClockGap::Suspended }).await;
    assert_eq!(recorded(&bench).await.len(), 3, "time that passes is no step");
}

#[tokio::test]
async fn only_the_time_in_which_no_daemon_ran_is_on_record() {
    let clock = clock();
    let setup = || {
        let mut setup = Setup::script("[[turn]]\ntext = \"done\"");
        setup.clock = Arc::new(clock.clone());
        setup
    };
    let bench = setup().start().await;
    bench.run("work").await;
    // It lies idle, is stopped in good order, and is started again a second later.
    clock.advance(Duration::from_secs(3 * 3600));
    let Bench { engine, journal, directory } = bench;
    engine.stop(Duration::from_secs(5)).await;
    drop(engine);
    journal.close().await.unwrap();
    clock.advance(Duration::from_secs(1));
    let bench = setup().start_in(directory).await;
    assert_eq!(recorded(&bench).await, []);
    let Bench { engine, journal, directory } = bench;
    engine.stop(Duration::from_secs(5)).await;
    drop(engine);
    journal.close().await.unwrap();
    clock.advance(Duration::from_secs(3600));
    let bench = setup().start_in(directory).await;
    let down = ClockStepped { by_ms: HOUR, gap: ClockGap::DaemonDown };
    assert_eq!(recorded(&bench).await, [down]);
}
