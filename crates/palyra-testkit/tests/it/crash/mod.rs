//! The crash matrix: a daemon is killed at every commit point of a run and must lose nothing, repeat nothing and finish.
//!
//! `scenario` says what runs do; `point` kills one run at one place, starts the daemon again and judges; this file sweeps over all
//! places. A place is "entering the n-th system call of a kind": writing a frame to the log, waiting for the disk (for the log,
//! or for any file), noting the head, moving a file into its place, sending an effect, waiting for its acknowledgement. Each sweep
//! goes up from 1 until a whole run is over, daemon stopped and all, without being killed: so every place that a run has was
//! tried, or in `make test` one in a few. `undo` does the same to an undo.

mod command_cases;
mod commands;
mod point;
mod scenario;
mod undo;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use palyra_common::ApprovalDecision;
use palyra_figures::{Aim, Report};
use palyra_testkit::{Answers, Kill, strace_is_usable};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use self::point::{Outcome, try_point};
use self::scenario::Scenario;

/// Points that are tried at the same time; most of a point is waiting for the disk.
const AT_ONCE: usize = 4;
/// No sweep is longer: a daemon that dies for ever would otherwise keep the test going.
const LONGEST_SWEEP: u32 = 2000;
/// `make test` tries one place in so many; `make test-all` tries all.
const SAMPLE_EVERY: u32 = 3;
/// What the matrix must at least cover.
const POINTS_AT_LEAST: usize = 200;

/// The signal of an ordered death.
const SIGKILL: i32 = 9;
/// Files of the journal below a state root.
const LOG: &[&str] = &["journal/journal.db-wal", "journal/journal.db"];
const ANCHOR: &[&str] = &["journal/anchor"];

/// Waiting for the disk anywhere in the daemon: the effect store, the workspace, the keys. The log is among it, so these points are
/// tried but not counted, lest a place be counted twice.
const ANY_SYNC: &str = "any sync";

/// The kinds of places: a name, the system calls and the files they are about.
const KINDS: [(&str, &str, &[&str]); 7] = [
    ("log write", "pwrite64", LOG),
    ("log sync", "fdatasync,fsync", LOG),
    ("anchor write", "pwrite64", ANCHOR),
    (ANY_SYNC, "fdatasync,fsync", &[]),
    ("file moved or removed", "rename,renameat,renameat2,unlink,unlinkat", &[]),
    ("effect sent", "sendto", &[]),
    ("effect acknowledged", "recvmsg", &[]),
];

/// What one sweep gave.
struct Sweep {
    name: String,
    kind: &'static str,
    /// Deaths of a point that was reached.
    kills: usize,
    outcomes: Vec<(u32, Outcome)>,
}

impl Sweep {
    fn points(&self) -> usize {
        self.outcomes.iter().filter(|(_, outcome)| outcome.deaths == self.kills).count()
    }
}

#[test]
fn a_kill_at_any_commit_point_loses_nothing_and_repeats_nothing() {
    assert!(strace_is_usable(), "the crash matrix needs strace: apt-get install strace (and ptrace permitted)");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(matrix());
}

/// The matrix can only be trusted if it sees what it looks for: somebody who allows a call of unknown outcome to run again
/// gets a second effect, and the count must say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_effect_would_be_counted() {
    let scenario = scenario::all_in_one_turn();
    // The third acknowledgement is that of the first call that must not be repeated.
    let kill = Kill { calls: "recvmsg", files: &[], at: 3 };
    let reckless = Answers { run_again: ApprovalDecision::Allow, ..Answers::default() };
    let outcome = try_point(&scenario, &[kill], reckless).await;
    assert_eq!((outcome.deaths, outcome.lost, outcome.twice), (1, 0, 1), "{outcome:?}");
    assert!(outcome.failure.as_ref().is_some_and(|failure| failure.contains("probe.once")), "{outcome:?}");
}

/// Whether everything is swept, and not a sample.
fn is_whole() -> bool {
    std::env::var_os("PALYRA_CRASH").is_some_and(|value| value == "all")
}

async fn matrix() {
    let began = Instant::now();
    let mut sweeps = Vec::new();
    for scenario in scenario::all().await {
        let scenario = Arc::new(scenario);
        for (name, calls, files) in KINDS {
            let outcomes = sweep(&scenario, &Kill { calls, files, at: 1 }).await;
            let kills = scenario.earlier_kill.iter().len() + 1;
            sweeps.push(Sweep { name: format!("{}: {name}", scenario.name), kind: name, kills, outcomes });
        }
    }
    report(&sweeps, began);
}

/// Tries the places of one kind, or a sample of them, from the first one up, until a run gets by unkilled.
async fn sweep(scenario: &Arc<Scenario>, kill: &Kill) -> Vec<(u32, Outcome)> {
    let every = if is_whole() { 1 } else { SAMPLE_EVERY };
    let found: Arc<Mutex<BTreeMap<u32, Outcome>>> = Arc::default();
    let next = Arc::new(Mutex::new(Some(1_u32)));
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (scenario, kill, found, next) = (Arc::clone(scenario), kill.clone(), Arc::clone(&found), Arc::clone(&next));
        workers.spawn(async move {
            loop {
                let at = {
                    let mut next = next.lock().await;
                    let Some(at) = *next else { return };
                    *next = (at < LONGEST_SWEEP).then_some(at + every);
                    at
                };
                let kills: Vec<Kill> =
                    scenario.earlier_kill.iter().cloned().chain([Kill { at, ..kill.clone() }]).collect();
                let outcome = try_point(&scenario, &kills, Answers::default()).await;
                if outcome.deaths < kills.len() {
                    *next.lock().await = None;
                }
                found.lock().await.insert(at, outcome);
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    std::mem::take(&mut *found.lock().await).into_iter().collect()
}

fn report(sweeps: &[Sweep], began: Instant) {
    let all = || sweeps.iter().flat_map(|sweep| sweep.outcomes.iter().map(move |(at, outcome)| (sweep, at, outcome)));
    for sweep in sweeps {
        let points = sweep.points();
        println!("  {:<52} {points:>4} points", sweep.name);
        assert!(points < sweep.outcomes.len(), "{}: no run got by unkilled within {LONGEST_SWEEP} places", sweep.name);
    }
    let failures: Vec<String> = all()
        .filter_map(|(sweep, at, outcome)| Some(format!("{} {at}: {}", sweep.name, outcome.failure.as_ref()?)))
        .collect();
    let points: usize = sweeps.iter().filter(|sweep| sweep.kind != ANY_SYNC).map(Sweep::points).sum();
    let lost: usize = all().map(|(_, _, outcome)| outcome.lost).sum();
    let twice: usize = all().map(|(_, _, outcome)| outcome.twice).sum();
    println!("crash matrix: {points} points, {} failures ({:.0?})", failures.len(), began.elapsed());

    let mut figures = Report::new("crash");
    let n = points as u64;
    figures
        .figure("crash.points", points as f64, "points", None, Aim::AtLeast(POINTS_AT_LEAST as f64), n, None)
        .figure("crash.lost", lost as f64, "records", None, Aim::AtMost(0.0), n, None)
        .figure("crash.twice", twice as f64, "effects", None, Aim::AtMost(0.0), n, None);
    figures.note("a point is one system call of one scenario; points that two sweeps share are counted once");
    figures.finish().unwrap();

    assert!(failures.is_empty(), "{} of {points} points failed:\n{}", failures.len(), failures.join("\n"));
    assert!(points >= POINTS_AT_LEAST, "only {points} points were tried");
    assert_eq!((lost, twice), (0, 0));
}
