//! The tamper matrix: a journal made by real runs is changed in many ways, and `palyra journal verify` must notice.
//!
//! `subject` makes the journal, `change` damages a copy of it, `oracle` reads the records of a copy with plain SQL and so says, without any help
//! of the product, whether a change altered them; this file runs the trials with the real command. What is asked: whatever
//! alters a record, their order or their number is reported with a position, and an untouched copy passes.

mod change;
mod oracle;
mod subject;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};
use palyra_figures::{Aim, Report};
use palyra_testkit::{DaemonOptions, Model, Random, TestContext, copy_tree};
use serde_json::Value;
use tempfile::TempDir;

use self::change::{Change, KINDS, Kind};
use self::subject::Subject;

const TRIALS: u64 = 600;
/// Trials at the same time.
const AT_ONCE: u64 = 4;

/// What one kind of change gave.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    trials: u32,
    altering: u32,
    detected: u32,
    named: u32,
}

/// What the command said.
struct Verdict {
    detected: bool,
    positions: Vec<String>,
    shown: String,
}

#[test]
fn verify_names_every_change_that_alters_a_record() {
    let seed = std::env::var("PALYRA_TAMPER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x70a1_17a0);
    println!("tamper matrix: seed {seed} (PALYRA_TAMPER_SEED)");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let subject = runtime.block_on(subject::make()).unwrap();
    untouched_copies_pass(&subject).unwrap();

    let counts: Mutex<BTreeMap<&str, Count>> = Mutex::default();
    let failures: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..AT_ONCE {
            let (subject, counts, failures) = (&subject, &counts, &failures);
            scope.spawn(move || {
                for trial in (worker..TRIALS).step_by(AT_ONCE as usize) {
                    let kind = KINDS[trial as usize % KINDS.len()];
                    let mut random = Random::seeded(seed ^ trial.wrapping_mul(0x9e37_79b9));
                    let result = one_trial(subject, kind, &mut random, counts);
                    if let Err(error) = result {
                        failures.lock().unwrap().push(format!("trial {trial}, {}: {error:#}", kind.name()));
                    }
                }
            });
        }
    });
    report(&counts.into_inner().unwrap(), &failures.into_inner().unwrap());
}

fn untouched_copies_pass(subject: &Subject) -> Result<()> {
    let directory = TempDir::new()?;
    copy_tree(&subject.root, &directory.path().join("state"))?;
    let verdict = verify(&directory.path().join("state"))?;
    ensure!(!verdict.detected, "an untouched copy does not pass: {}", verdict.shown);
    Ok(())
}

fn one_trial(
    subject: &Subject,
    kind: Kind,
    random: &mut Random,
    counts: &Mutex<BTreeMap<&'static str, Count>>,
) -> Result<()> {
    let directory = TempDir::with_prefix("palyra-tamper-")?;
    let root = directory.path().join("state");
    copy_tree(&subject.root, &root)?;
    let change = change::apply(kind, subject, &root, random).with_context(|| "changing the copy")?;
    let altered = oracle::records(&root).ok().as_ref() != Some(&subject.records);
    let verdict = verify(&root)?;
    if kind == Kind::EditProjection {
        // A start builds a derived table again from the log before it appends anything.
        let rebuilt = verify_by_daemon(&root)?;
        ensure!(!rebuilt.detected, "{}: not rebuilt by a start: {}", change.what, rebuilt.shown);
    }
    if matches!(kind, Kind::ForgeRestore | Kind::LaunderByRestore) {
        ensure!(verdict.detected, "{}: not noticed before a start: {}", change.what, verdict.shown);
        let started = verify_by_daemon(&root)?;
        for after in [started, verify(&root)?] {
            let named = after.detected && after.shown.contains("restore_unacknowledged") && !after.positions.is_empty();
            ensure!(named, "{}: not noticed after a start: {}", change.what, after.shown);
        }
    }
    {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(kind.name()).or_default();
        count.trials += 1;
        count.altering += u32::from(altered);
        count.detected += u32::from(altered && verdict.detected);
        count.named += u32::from(altered && verdict.detected && !verdict.positions.is_empty());
    }
    judge(&change, altered, &verdict).with_context(|| format!("{}\n{}", change.what, verdict.shown))
}

fn judge(change: &Change, altered: bool, verdict: &Verdict) -> Result<()> {
    if altered || change.must_be_noticed {
        ensure!(verdict.detected, "not noticed");
        ensure!(!verdict.positions.is_empty(), "noticed, but no position is named");
    }
    if let Some(seq) = change.seq {
        ensure!(altered, "the change was meant to alter record {seq}");
        let named = verdict.positions.iter().any(|position| covers(position, seq));
        ensure!(named, "record {seq} was changed, but only {:?} are named", verdict.positions);
    }
    Ok(())
}

/// Whether a position such as `record 17` or `records 17 to 20` is about this record.
fn covers(position: &str, seq: u64) -> bool {
    let numbers: Vec<u64> =
        position.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    match (position.starts_with("record"), numbers.as_slice()) {
        (true, [only]) => *only == seq,
        (true, [first, last]) => (*first..=*last).contains(&seq),
        _ => false,
    }
}

/// Asks the real command, with no daemon running.
fn verify(root: &Path) -> Result<Verdict> {
    let context = TestContext::new()?.env("PALYRA_STATE_ROOT", root.display());
    let run = context.run(["journal", "verify", "--output", "json"])?;
    ensure!(matches!(run.code, 0 | 1 | 7), "verify ended in an unexpected way: {run}");
    let document = run.json()?;
    let problems = document.get("problems").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut positions: Vec<String> =
        problems.iter().filter_map(|problem| Some(problem.get("position")?.as_str()?.to_owned())).collect();
    // A file that cannot be opened at all is reported as an error that names it.
    let error = document.get("error").unwrap_or(&document);
    if let (Some(_), Some(message)) = (error.get("code"), error.get("message").and_then(Value::as_str)) {
        positions.push(message.to_owned());
    }
    Ok(Verdict { detected: run.code != 0, positions, shown: run.to_string() })
}

/// Asks the real command while a daemon runs on the changed state.
fn verify_by_daemon(root: &Path) -> Result<Verdict> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let daemon = runtime.block_on(DaemonOptions::new(Model::Offline).state_root(root).start())?;
    let verdict = verify(root);
    drop(daemon);
    verdict
}

fn report(counts: &BTreeMap<&str, Count>, failures: &[String]) {
    println!("{:<28} {:>7} {:>9} {:>9} {:>9}", "kind of change", "trials", "altering", "detected", "position");
    let mut sum = Count::default();
    for (name, count) in counts {
        let Count { trials, altering, detected, named } = *count;
        println!("{name:<28} {trials:>7} {altering:>9} {detected:>9} {named:>9}");
        sum.trials += trials;
        sum.altering += altering;
        sum.detected += detected;
        sum.named += named;
    }
    println!(
        "tamper matrix: {} trials, {} altering, {} detected, {} with a position, {} failures",
        sum.trials,
        sum.altering,
        sum.detected,
        sum.named,
        failures.len()
    );
    let n = u64::from(sum.trials);
    let unnoticed = sum.altering.saturating_sub(sum.detected);
    let mut figures = Report::new("tamper-random");
    figures
        .figure("tamper.random.tried", f64::from(sum.altering), "changes", None, Aim::AtLeast(300.0), n, None)
        .figure("tamper.random.unnoticed", f64::from(unnoticed), "changes", None, Aim::AtMost(0.0), n, None);
    figures.note(
        "random changes to a journal of real runs that altered a record, by an independent reader of the records",
    );
    figures.finish().unwrap();
    assert!(failures.is_empty(), "{} trials failed:\n{}", failures.len(), failures.join("\n"));
    assert!(u64::from(sum.trials) == TRIALS && sum.altering > 300, "too few trials altered anything");
    assert_eq!((sum.altering, sum.altering), (sum.detected, sum.named));
}
