//! Observes when the processes of a sandbox or a server do not run, so that what changes meanwhile is not taken for theirs.
//!
//! The scheduler counts how often each thread was switched away. If between two observations no thread came or went, none was ready to run and no count changed, then
//! none of them ran: a thread that did is either still at it or has been switched away once more. Observing costs a few reads of `/proc` and no privilege.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use palyra_tools::IdlePeriods;

/// How long to wait between observations; longer if they take long.
const EVERY: Duration = Duration::from_millis(25);
/// Observing takes at most one part in this many.
const SHARE: u32 = 20;
/// More threads than this are not observed: then nothing is known about when they ran.
const THREADS: usize = 2_000;
/// How far the two clocks may drift apart within one period before somebody has set one of them.
const DRIFT: Duration = Duration::from_millis(5);

/// Observes the processes of one call until it is dropped or they have ended.
pub struct IdleMonitor {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    periods: IdlePeriods,
}

/// Whose threads are observed.
#[derive(Debug, Clone, Copy)]
enum Subject {
    /// Everything below a supervisor, but for the first process of its sandbox.
    Sandbox { supervisor: u32, first: u32 },
    /// A process and everything below it.
    Tree { root: u32 },
}

/// How often each thread was switched away.
type Switches = BTreeMap<u32, u64>;

/// One observation.
struct Observation {
    begun: SystemTime,
    done: SystemTime,
    instant: Instant,
    /// `None` if a thread runs or is ready to, or nobody can tell.
    asleep: Option<Switches>,
}

impl IdleMonitor {
    /// Observes the sandbox whose first process has this id.
    pub(crate) fn of_sandbox(first: i32, periods: IdlePeriods) -> Self {
        // What a guest leaves behind becomes a child of the first process or of the supervisor, so the whole tree is below that.
        let find = move || {
            let first = u32::try_from(first).ok()?;
            Some(Subject::Sandbox { supervisor: parent_of(first)?, first })
        };
        Self::start(find, periods)
    }

    /// Observes a process with all its descendants. One whose parent ended before it is no longer among them, so others may write for the process unobserved.
    #[must_use]
    pub fn of_tree(root: u32, periods: IdlePeriods) -> Self {
        Self::start(move || Some(Subject::Tree { root }), periods)
    }

    fn start(find: impl FnOnce() -> Option<Subject> + Send + 'static, periods: IdlePeriods) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, noted) = (Arc::clone(&stop), periods.clone());
        // Without it, whatever changed during the call counts as the call's, as it does for programs that never sleep.
        let thread = std::thread::Builder::new().name("idle-monitor".to_owned());
        let thread = thread.spawn(move || {
            if let Some(subject) = find() {
                observe(subject, &noted, &stopped);
            }
        });
        let thread = thread.ok();
        Self { stop, thread, periods }
    }

    /// Notes that the program and everything it started is gone.
    pub(crate) fn ended(self) {
        self.periods.ended();
    }
}

impl Drop for IdleMonitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It ends by itself within one observation; nobody needs to wait for that.
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
        }
    }
}

fn observe(subject: Subject, periods: &IdlePeriods, stop: &AtomicBool) {
    let mut chain = Chain::default();
    while !stop.load(Ordering::Relaxed) {
        let now = Observation::of(subject);
        let took = now.instant.elapsed();
        if let Some((from, until)) = chain.extend(now) {
            periods.add(from, until);
        }
        std::thread::park_timeout(EVERY.max(took * SHARE));
    }
}

/// Observations that prove one period of sleep between them.
#[derive(Default)]
struct Chain {
    /// When the first of them was done.
    since: Option<SystemTime>,
    last: Option<Observation>,
}

impl Chain {
    /// The period that is proven with one more observation, from the first of the chain on: nothing ran while the ones in between were made, either.
    fn extend(&mut self, now: Observation) -> Option<(SystemTime, SystemTime)> {
        let continued = self.last.as_ref().filter(|last| now.continues(last)).map(|last| last.done);
        self.since = continued.map(|done| self.since.unwrap_or(done));
        let period = self.since.map(|since| (since, now.begun));
        self.last = Some(now);
        period
    }
}

impl Observation {
    fn of(subject: Subject) -> Self {
        let (begun, instant) = (SystemTime::now(), Instant::now());
        let asleep = switches(subject);
        Self { begun, done: SystemTime::now(), instant, asleep }
    }

    /// Whether nothing ran since the other one, and nobody set the clock.
    fn continues(&self, last: &Self) -> bool {
        let asleep = self.asleep.as_ref().is_some_and(|switches| Some(switches) == last.asleep.as_ref());
        let measured = self.instant.duration_since(last.instant);
        let by_clock = self.begun.duration_since(last.begun);
        asleep && by_clock.is_ok_and(|by_clock| by_clock.abs_diff(measured) < DRIFT)
    }
}

/// How often each observed thread was switched away, if there is one and none of them runs. The first process of a sandbox is ours: it touches no files of the
/// workspace, and where no control group counts memory it wakes up to do so.
fn switches(subject: Subject) -> Option<Switches> {
    let mut found = Switches::new();
    let (mut ahead, ours) = match subject {
        Subject::Sandbox { supervisor, first } => (children(supervisor)?, Some(first)),
        Subject::Tree { root } => (vec![root], None),
    };
    while let Some(process) = ahead.pop() {
        for thread in threads(process)?.into_iter().filter(|_| ours != Some(process)) {
            let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).ok()?;
            found.insert(thread, switched_away(&status)?);
        }
        if found.len() > THREADS {
            return None;
        }
        ahead.extend(children(process)?);
    }
    (!found.is_empty()).then_some(found)
}

fn threads(process: u32) -> Option<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn children(process: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in threads(process)? {
        let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).ok()?;
        found.extend(text.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Some(found)
}

/// How often a thread was switched away; `None` if it runs or is ready to.
fn switched_away(status: &str) -> Option<u64> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let asleep = field("State:").is_some_and(|state| !state.starts_with('R'));
    let count = |name: &str| field(name)?.parse::<u64>().ok();
    let sum = count("voluntary_ctxt_switches:")?.checked_add(count("nonvoluntary_ctxt_switches:")?)?;
    asleep.then_some(sum)
}

fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_is_told_from_one_that_runs() {
        let status = |state: &str| {
            format!("Name:\tx\nState:\t{state}\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n")
        };
        assert_eq!(switched_away(&status("S (sleeping)")), Some(9));
        assert_eq!(switched_away(&status("D (disk sleep)")), Some(9));
        assert_eq!(switched_away(&status("R (running)")), None);
        assert_eq!(switched_away("State:\tS (sleeping)\n"), None, "without counts nothing is known");
    }

    #[test]
    fn two_observations_prove_sleep_only_if_nothing_differs() {
        let (start, instant) = (SystemTime::now(), Instant::now());
        let seen = |millis: u64, clock: u64, asleep: Option<&[(u32, u64)]>| Observation {
            begun: start + Duration::from_millis(clock),
            done: start + Duration::from_millis(clock),
            instant: instant + Duration::from_millis(millis),
            asleep: asleep.map(|switches| switches.iter().copied().collect()),
        };
        let mut chain = Chain::default();
        let at = |millis: u64| start + Duration::from_millis(millis);
        assert_eq!(chain.extend(seen(0, 0, Some(&[(1, 5)]))), None);
        assert_eq!(chain.extend(seen(25, 25, Some(&[(1, 5)]))), Some((at(0), at(25))));
        assert_eq!(chain.extend(seen(50, 50, Some(&[(1, 5)]))), Some((at(0), at(50))), "one period without gaps");
        assert_eq!(chain.extend(seen(75, 75, Some(&[(1, 6)]))), None);
        assert_eq!(chain.extend(seen(99, 99, Some(&[(1, 6)]))), Some((at(75), at(99))), "a new one");
        let first = seen(0, 0, Some(&[(1, 5)]));
        assert!(seen(25, 25, Some(&[(1, 5)])).continues(&first));
        assert!(!seen(25, 25, Some(&[(1, 6)])).continues(&first), "it ran");
        assert!(!seen(25, 25, Some(&[(1, 5), (2, 0)])).continues(&first), "another one came");
        assert!(!seen(25, 25, None).continues(&first), "one runs");
        assert!(!seen(25, 3_600_000, Some(&[(1, 5)])).continues(&first), "the clock was set");
        assert!(!seen(50, 50, Some(&[(1, 5)])).continues(&seen(25, 25, None)), "nothing was known before");
    }
}
