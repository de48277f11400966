//! Faults at every system call: the calls of the journal and the artifact store fail one after the other with EIO, ENOSPC, EROFS and EMFILE, at start, while a
//! run is at work, during a backup and while the daemon stops.
//!
//! `point` is one fault and the judgement over what is left; this file chooses the points. A class is a system call on the journal's files, or on any file:
//! artifacts are written under names that nobody knows before. `write` is left to `system::io_faults`, which tells files apart: on any file it would also fail for the
//! event counters of the runtime, for which no kernel ever says so. `make test` takes a sample; `make test-all` sets `PALYRA_FAULTS`, the number of places per
//! class and error (`0`: every one).

mod point;

use std::collections::BTreeSet;
use std::time::Instant;

use palyra_figures::{Aim, Report};
use palyra_testkit::{FaultDuration, Random, SyscallFault, strace_is_usable};

use self::point::{Outcome, Template, try_point};

const ERRORS: [&str; 4] = ["EIO", "ENOSPC", "EROFS", "EMFILE"];

const JOURNAL: &[&str] = &[
    "journal",
    "journal/journal.db",
    "journal/journal.db-wal",
    "journal/journal.db-shm",
    "journal/anchor",
    "journal.anchor",
    "journal/writer.lock",
    "journal/closed",
];
const ANY: &[&str] = &[];

/// A kind of place: the calls, the files they are about, and the n-th up to which every run of the point's scenario gets.
struct Class {
    calls: &'static str,
    files: &'static [&'static str],
    surely: u64,
}

const fn class(calls: &'static str, files: &'static [&'static str], surely: u64) -> Class {
    Class { calls, files, surely }
}

const CLASSES: [Class; 19] = [
    class("openat", JOURNAL, 4),
    class("pread64", JOURNAL, 10),
    class("pwrite64", JOURNAL, 40),
    class("fdatasync", JOURNAL, 6),
    class("fsync", JOURNAL, 2),
    class("fcntl", JOURNAL, 20),
    class("newfstatat,statx,fstat", JOURNAL, 8),
    class("ftruncate,fallocate", JOURNAL, 1),
    class("read", JOURNAL, 1),
    class("mmap", JOURNAL, 1),
    class("unlink,unlinkat", JOURNAL, 1),
    class("openat", ANY, 30),
    class("fsync,fdatasync", ANY, 8),
    class("rename,renameat,renameat2", ANY, 2),
    class("mkdir,mkdirat", ANY, 4),
    class("unlink,unlinkat", ANY, 2),
    class("getdents64", ANY, 1),
    class("fchown,chmod,fchmod,statfs,flock,lseek,readlink", ANY, 1),
    class("copy_file_range,sendfile", ANY, 1),
];

/// Calls on these files that are in no class, and why.
const ELSEWHERE: [(&str, &str); 3] = [
    ("write", "`system::io_faults` lets each of them fail"),
    ("close", "the descriptor is gone whatever it says, and everything was synced before"),
    ("munmap", "it fails only for an address that was never mapped"),
];

/// Points in `make test`.
const SAMPLE: usize = 8;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_failing_system_call_loses_what_was_acknowledged_or_leaves_a_run_stuck() {
    assert!(strace_is_usable(), "this needs strace: apt-get install strace (and ptrace permitted)");
    let began = Instant::now();
    let template = Template::make().await.unwrap();
    let whole = setting("PALYRA_FAULTS");
    let points = match whole {
        None => sample(),
        Some(places) => all(&template, u32::try_from(places).unwrap()).await,
    };
    let mut outcomes = Vec::new();
    for fault in points {
        let outcome = try_point(&template, &fault).await;
        if let Some(failure) = &outcome.failure {
            println!("{fault:?}: {failure}");
        }
        outcomes.push((fault, outcome));
    }
    report(&outcomes, whole.is_some(), began);
}

/// A call that somebody begins to use on these files is not left out by oversight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_system_call_on_the_journal_and_the_artifacts_has_a_class() {
    assert!(strace_is_usable(), "this needs strace: apt-get install strace (and ptrace permitted)");
    let template = Template::make().await.unwrap();
    let every = SyscallFault { calls: "all", files: ANY, error: None, at: 1, lasts: FaultDuration::Once };
    let traced = try_point(&template, &every).await;
    assert_eq!(traced.failure, None);
    let known: BTreeSet<&str> = CLASSES
        .iter()
        .flat_map(|class| class.calls.split(','))
        .chain(ELSEWHERE.iter().map(|(name, _)| *name))
        .collect();
    assert!(traced.names.contains("pwrite64") && traced.names.contains("rename"), "{:?}", traced.names);
    let unknown: Vec<_> = traced.names.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "no class has {unknown:?}");
}

/// A few places that every run of the scenario gets to.
fn sample() -> Vec<SyscallFault> {
    let seed = setting("PALYRA_FAULTS_SEED").unwrap_or(0x6661_756c);
    println!("faults: seed {seed} (PALYRA_FAULTS_SEED)");
    let mut random = Random::seeded(seed);
    let mut points = Vec::new();
    for number in 0..SAMPLE {
        let class = random.pick(&CLASSES).unwrap();
        let at = 1 + u32::try_from(random.below(class.surely)).unwrap();
        let lasts = if number % 2 == 0 { FaultDuration::Once } else { FaultDuration::Lasting };
        let error = Some(ERRORS[number % ERRORS.len()]);
        points.push(SyscallFault { calls: class.calls, files: class.files, error, at, lasts });
    }
    points
}

/// So many places of each class and error, evenly spread over those that a run without faults has.
async fn all(template: &Template, places: u32) -> Vec<SyscallFault> {
    let mut points = Vec::new();
    for class in &CLASSES {
        let (calls, files) = (class.calls, class.files);
        let counting = SyscallFault { calls, files, error: None, at: 1, lasts: FaultDuration::Once };
        let counted = try_point(template, &counting).await;
        assert_eq!(counted.failure, None, "{calls}: without a fault");
        let most = counted.calls;
        println!("{calls} on {}: {most} places", if files.is_empty() { "any file" } else { "the journal" });
        assert!(u64::from(most) >= class.surely, "{calls}: only {most} calls");
        let step = if places == 0 { 1 } else { most.div_ceil(places).max(1) };
        for error in ERRORS {
            let once = (1..=most).step_by(step as usize).map(|at| (at, FaultDuration::Once));
            let lasting = [(most.div_ceil(2), FaultDuration::Lasting)];
            points.extend(once.chain(lasting).map(|(at, lasts)| SyscallFault {
                calls,
                files,
                error: Some(error),
                at,
                lasts,
            }));
        }
    }
    points
}

fn report(outcomes: &[(SyscallFault, Outcome)], whole: bool, began: Instant) {
    let fired = outcomes.iter().filter(|(_, outcome)| outcome.failed > 0).count();
    let failures: Vec<String> = outcomes
        .iter()
        .filter_map(|(fault, outcome)| Some(format!("{fault:?}: {}", outcome.failure.as_ref()?)))
        .collect();
    println!(
        "faults: {} points, {fired} of them reached, {} calls failed, {} failures ({:.0?})",
        outcomes.len(),
        outcomes.iter().map(|(_, outcome)| outcome.failed).sum::<usize>(),
        failures.len(),
        began.elapsed()
    );
    if whole {
        let n = fired as u64;
        let mut figures = Report::new("faults");
        figures.figure("faults.points", fired as f64, "points", None, Aim::None, n, None).figure(
            "faults.failures",
            failures.len() as f64,
            "points",
            None,
            Aim::AtMost(0.0),
            n,
            None,
        );
        figures.note("a point is one system call of the journal or the artifact store that fails with one error");
        figures.finish().unwrap();
    }
    assert!(failures.is_empty(), "{} points failed:\n{}", failures.len(), failures.join("\n"));
    // Threads share the work differently each time, so that a place near the end may not be reached.
    for class in &CLASSES {
        let of_class = |fault: &SyscallFault| fault.calls == class.calls && fault.files == class.files;
        let tried = outcomes.iter().filter(|(fault, _)| of_class(fault)).count();
        let reached = outcomes.iter().filter(|(fault, outcome)| of_class(fault) && outcome.failed > 0).count();
        assert!(tried == 0 || reached > 0, "no call of the class {} failed in {tried} points", class.calls);
    }
}
