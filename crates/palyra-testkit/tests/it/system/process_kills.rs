//! A daemon that is killed around the start of a process: somebody is asked about the outcome only where the process had begun, and otherwise it is simply started again.
//!
//! What had begun is told by the process itself: each execution leaves a file of its own in the workspace.

use std::path::Path;
use std::time::{Duration, Instant};

use palyra_common::{RunLifecyclePhase, RunStreamBody, RunStreamEvent};
use palyra_testkit::{DaemonOptions, Model, Random};
use serde_json::json;

use super::{PATIENCE, call, finish, task, workspace};

/// One file for each execution; then it goes on until it is killed.
const LEAVES_A_FILE: &str = "mktemp ran.XXXXXX; while [ ! -e enough ]; do sleep 0.05; done";
/// How often a moment that can be missed is tried for.
const TRIES: usize = 10;

/// When a daemon is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// The decision to start the process is on the journal.
    Decided,
    /// So long after that.
    After(Duration),
    /// The process has begun.
    Begun,
}

/// What a kill left.
#[derive(Debug)]
struct Outcome {
    /// Whether the journal said that the process begins.
    on_record: bool,
    /// Executions when the daemon was dead.
    begun: usize,
    /// Executions in all.
    executions: usize,
    /// Questions about an unknown outcome.
    questions: usize,
}

/// Kinds of the records on the tapes of a state, in use or not.
fn has_record(root: &Path, kind: &str) -> bool {
    let Ok(reader) = palyra_journal::open_read_only(root) else { return false };
    let mut found = false;
    reader
        .for_each(1, &mut |record| {
            found |= record.kind == kind;
            Ok(())
        })
        .unwrap();
    found
}

fn executions(place: &Path) -> usize {
    let entries = std::fs::read_dir(place).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("ran.")).count()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: it did not come to that");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn questions(events: &[RunStreamEvent]) -> usize {
    let is_question = |event: &&RunStreamEvent| matches!(&event.body, RunStreamBody::ToolApprovalRequest(request) if request.reason.contains("outcome is unknown"));
    events.iter().filter(is_question).count()
}

/// Kills a daemon at a moment of a call that starts a process, and sees the run to its end.
async fn killed(moment: Moment) -> Outcome {
    let place = workspace();
    let argv = ["sh", "-c", LEAVES_A_FILE];
    let script = json!({ "turn": [
        call("palyra.process.run", json!({ "argv": argv, "shell": true })),
        { "text": "done" },
    ] });
    // A state of its own, whose sandbox is proven before its first process.
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let (client, root) = (daemon.client(), daemon.state_root().to_owned());
    let run = client.create_run(&task("go", place.path())).await.unwrap();
    // The question whether a shell may run at all is answered by whoever follows.
    let following = tokio::spawn({
        let client = client.clone();
        async move { palyra_testkit::Person::new(run.run_id).follow(&client).await }
    });
    tokio::task::block_in_place(|| match moment {
        Moment::Decided => wait_until("the decision", || has_record(&root, "tool.intent")),
        Moment::After(pause) => {
            wait_until("the decision", || has_record(&root, "tool.intent"));
            std::thread::sleep(pause);
        }
        Moment::Begun => wait_until("the execution", || executions(place.path()) > 0),
    });
    daemon.kill9().unwrap();
    let _ = following.await;
    let on_record = has_record(&root, "tool.started");
    let begun = executions(place.path());
    // Whoever is started from now on ends by itself.
    std::fs::write(place.path().join("enough"), "").unwrap();
    daemon.restart().await.unwrap();
    let (detail, events) = finish(&daemon.client(), run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    daemon.finish().await.unwrap();
    let outcome = Outcome { on_record, begun, executions: executions(place.path()), questions: questions(&events) };
    println!("{moment:?}: {outcome:?}");
    outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_process_had_not_begun_is_made_again_unasked() {
    for _ in 0..TRIES {
        let Outcome { on_record, begun, executions, questions } = killed(Moment::Decided).await;
        // The moment was missed: the process was on its way already.
        if on_record {
            continue;
        }
        assert_eq!((begun, executions, questions), (0, 1, 0));
        return;
    }
    panic!("no kill came before the process began");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_process_had_begun_is_asked_about_and_not_made_again() {
    let Outcome { on_record, begun, executions, questions } = killed(Moment::Begun).await;
    assert!(on_record, "a process began that the journal does not know of");
    assert_eq!((begun, executions, questions), (1, 1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_the_kill_falls_the_question_follows_the_record_and_nothing_runs_twice() {
    let seed = std::env::var("PALYRA_KILLS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5ee_d17);
    println!("kills around the start of a process: seed {seed} (PALYRA_KILLS_SEED)");
    let mut random = Random::seeded(seed);
    for _ in 0..6 {
        let Outcome { on_record, begun, executions, questions } =
            killed(Moment::After(Duration::from_millis(random.below(1_000)))).await;
        if on_record {
            // The record comes right before the start, so that nothing can begin unknown; between the two nobody can tell.
            assert_eq!((executions, questions), (begun, 1));
            assert!(begun <= 1);
        } else {
            assert_eq!((begun, executions, questions), (0, 1, 0));
        }
    }
}
