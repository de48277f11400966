//! What durability costs: the journal against the bare library on the same disk, in one run.
//!
//! - `append1`: one writer, latency of a durable append against one `fdatasync` of an appended page; and back to back, on a thread of its own
//!   (`each`) and as a task of the runtime (`task`), against SQLite with a commit per row.
//! - `append8`, `append64`: appends per second of many writers against SQLite with the same table and rows, once with a commit (and so an
//!   fsync) per row and once with 64 rows per commit, which is the most that 64 waiting writers can share.
//! - growth: reading a tape, verifying and opening at 10⁴, 10⁵ and 10⁶ records, with the exponent of time over records.
//!
//! Rows have a payload of 300 bytes, about the median of a run's records. Left out: projections of the engine, segments being moved.
//! `PALYRA_FIGURES_RECORDS` caps the sizes for a quick look.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use palyra_common::{RunId, SessionId, Timestamp};
use palyra_figures::{Aim, Report, Samples, exponent, measure};
use palyra_journal::{Journal, JournalOptions, NewRecord, VerifyOptions, verify};
use rusqlite::{Connection, params};

type Failure = Box<dyn std::error::Error>;

const ROWS: usize = 6_400;
const BATCH: usize = 64;
/// Appends before the clock starts, a multiple of the batch.
const WARM_UP: usize = 128;
const REPEATS: usize = 11;
const SINGLE: usize = 400;
/// Rounds of the figures about growth.
const ROUNDS: usize = 7;
const PER_RUN: u64 = 20;

fn main() -> Result<(), Failure> {
    let mut report = Report::new("journal");
    latency(&mut report)?;
    throughput(&mut report)?;
    growth(&mut report)?;
    report.finish()?;
    Ok(())
}

fn payload(n: usize) -> Vec<u8> {
    format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(280)).into_bytes()
}

fn record(n: usize, run: RunId, run_seq: u64) -> NewRecord {
    NewRecord::new("bench.record", Timestamp(n as i64), payload(n))
        .in_session(SessionId::from_u128(1))
        .on_tape(run, run_seq)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// One writer against one `fdatasync`, alternating so that both see the same disk.
fn latency(report: &mut Report) -> Result<(), Failure> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let journal = Journal::open(JournalOptions::at(directory.path().join("state")))?;
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(directory.path().join("raw"))?;
    let runtime = runtime()?;
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for n in 0..SINGLE {
        let record = record(n, RunId::from_u128(9), n as u64 + 1);
        let began = Instant::now();
        runtime.block_on(journal.append(vec![record]))?;
        ours.push(began.elapsed().as_secs_f64());
        raw.push(sync_one(&file, n)?);
    }
    let ours = Samples::from_values(ours).ok_or("no samples")?;
    let raw = Samples::from_values(raw).ok_or("no samples")?;
    let n = SINGLE as u64;
    report.figure(
        "journal.append1",
        ours.median() / raw.median(),
        "ratio",
        Some("one fdatasync"),
        Aim::AtMost(1.5),
        n,
        Some(ours.spread()),
    );
    report.figure("journal.append1.latency", ours.median() * 1e6, "µs", None, Aim::None, n, Some(ours.spread()));
    report.figure("journal.fdatasync", raw.median() * 1e6, "µs", None, Aim::None, n, Some(raw.spread()));
    runtime.block_on(journal.close())?;
    Ok(())
}

fn sync_one(file: &File, n: usize) -> Result<f64, Failure> {
    let began = Instant::now();
    file.write_all_at(&[7; 4096], n as u64 * 4096)?;
    file.sync_data()?;
    Ok(began.elapsed().as_secs_f64())
}

fn throughput(report: &mut Report) -> Result<(), Failure> {
    let mut single = Vec::new();
    let mut batched = Vec::new();
    let mut awaited = Vec::new();
    let mut ours: [Vec<f64>; 3] = Default::default();
    // Interleaved, and compared pair by pair: a slow moment of the disk hits both sides of a ratio.
    for _ in 0..REPEATS {
        single.push(raw_rate(ROWS / 8, 1)?);
        for (samples, writers) in ours.iter_mut().zip([1, 8, 64]) {
            samples.push(journal_rate(writers)?);
        }
        awaited.push(awaited_rate()?);
        batched.push(raw_rate(ROWS, BATCH)?);
    }
    let n = REPEATS as u64;
    rate(report, "sqlite.fsync_each", &single)?;
    rate(report, "sqlite.batched", &batched)?;
    for (values, writers) in ours.iter().zip([1, 8, 64]) {
        rate(report, &format!("journal.rate{writers}"), values)?;
        let each = ratios(values, &single)?;
        let reference = Some("raw SQLite, one fsync per append");
        let id = format!("journal.append{writers}.each");
        report.figure(&id, each.median(), "ratio", reference, Aim::AtLeast(1.0), n, Some(each.spread()));
    }
    let each = ratios(&awaited, &single)?;
    let reference = Some("raw SQLite, one fsync per append");
    report.figure("journal.append1.task", each.median(), "ratio", reference, Aim::None, n, Some(each.spread()));
    let [_, _, many] = &ours;
    let ratio = ratios(many, &batched)?;
    let reference = Some("raw SQLite, 64 rows per commit");
    report.figure("journal.append64", ratio.median(), "ratio", reference, Aim::AtLeast(0.6), n, Some(ratio.spread()));
    Ok(())
}

fn rate(report: &mut Report, id: &str, values: &[f64]) -> Result<(), Failure> {
    let samples = Samples::from_values(values.to_vec()).ok_or("no samples")?;
    report.figure(id, samples.median(), "appends/s", None, Aim::None, values.len() as u64, Some(samples.spread()));
    Ok(())
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Result<Samples, Failure> {
    Samples::from_values(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
        .ok_or_else(|| "no samples".into())
}

/// Rows per second of bare SQLite with the same columns and index, `batch` rows per commit.
fn raw_rate(rows: usize, batch: usize) -> Result<f64, Failure> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut db = Connection::open(directory.path().join("raw.db"))?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE records (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, session_id BLOB, run_id BLOB,
            run_seq INTEGER, payload BLOB, prev_hash BLOB NOT NULL, hash BLOB NOT NULL) STRICT;
         CREATE UNIQUE INDEX by_run ON records (run_id, run_seq) WHERE run_id IS NOT NULL;",
    )?;
    let hash = [5_u8; 32];
    let mut began = Instant::now();
    for first in (0..rows + WARM_UP).step_by(batch) {
        if first <= WARM_UP {
            began = Instant::now();
        }
        let transaction = db.transaction()?;
        for n in first..first + batch {
            transaction.prepare_cached("INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?.execute(
                params![
                    n as i64 + 1,
                    n as i64,
                    "bench.record",
                    1_u128.to_be_bytes(),
                    ((n % 64) as u128).to_be_bytes(),
                    (n / 64) as i64 + 1,
                    payload(n),
                    hash,
                    hash
                ],
            )?;
        }
        transaction.commit()?;
    }
    Ok(rows as f64 / began.elapsed().as_secs_f64())
}

/// Appends per second of `writers` who each wait for their own append: one on its own thread, more as tasks.
fn journal_rate(writers: usize) -> Result<f64, Failure> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let journal = Journal::open(JournalOptions::at(directory.path().join("state")))?;
    for n in 0..WARM_UP {
        journal.append_blocking(vec![record(n, RunId::from_u128(99), n as u64 + 1)])?;
    }
    let runtime = runtime()?;
    let (rows, seconds) = if writers == 1 {
        let began = Instant::now();
        for n in 0..ROWS / 8 {
            journal.append_blocking(vec![record(n, RunId::from_u128(100), n as u64 + 1)])?;
        }
        (ROWS / 8, began.elapsed().as_secs_f64())
    } else {
        (ROWS, runtime.block_on(tasks(&journal, writers, 100, ROWS))?)
    };
    runtime.block_on(journal.close())?;
    Ok(rows as f64 / seconds)
}

/// Appends per second of one task on the runtime, as a lone run makes them.
fn awaited_rate() -> Result<f64, Failure> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let journal = Journal::open(JournalOptions::at(directory.path().join("state")))?;
    let runtime = runtime()?;
    runtime.block_on(tasks(&journal, 1, 100, WARM_UP))?;
    let seconds = runtime.block_on(tasks(&journal, 1, 200, ROWS / 8))?;
    runtime.block_on(journal.close())?;
    Ok((ROWS / 8) as f64 / seconds)
}

/// The time in which as many tasks, whose runs are numbered from `first_run`, append `rows` records.
async fn tasks(journal: &Journal, writers: usize, first_run: u128, rows: usize) -> Result<f64, Failure> {
    let began = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let run = RunId::from_u128(first_run + writer as u128);
                for n in 0..rows / writers {
                    journal.append(vec![record(n, run, n as u64 + 1)]).await?;
                }
                Ok::<_, palyra_journal::JournalError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Every round measures every size once, so that a slow moment of the machine hits them alike; each exponent is that of one round.
fn growth(report: &mut Report) -> Result<(), Failure> {
    let cap = std::env::var("PALYRA_FIGURES_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let sizes: Vec<usize> = [10_000, 100_000, 1_000_000].into_iter().filter(|size| *size <= cap).collect();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let roots: Vec<PathBuf> = sizes.iter().map(|size| directory.path().join(size.to_string())).collect();
    for (root, size) in roots.iter().zip(&sizes) {
        fill(root, *size)?;
    }
    let mut rounds: [Vec<Vec<f64>>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let mut round: [Vec<f64>; 3] = Default::default();
        let [tape, check, open] = &mut round;
        for (root, size) in roots.iter().zip(&sizes) {
            open.push(measure(1, 7, || drop(Journal::open(JournalOptions::at(root)))).median());
            tape.push(read_tapes(root, *size)?);
            let began = Instant::now();
            let found = verify(root, VerifyOptions::default())?;
            check.push(began.elapsed().as_secs_f64());
            assert!(found.problems.is_empty(), "{:?}", found.problems);
            assert_eq!(found.records, *size as u64);
        }
        for (all, one) in rounds.iter_mut().zip(round) {
            all.push(one);
        }
    }
    let as_f64: Vec<f64> = sizes.iter().map(|size| *size as f64).collect();
    let n = ROUNDS as u64;
    for (name, rounds, aim) in [("tape", &rounds[0], 0.1), ("verify", &rounds[1], 1.1), ("open", &rounds[2], 0.2)] {
        for (at, size) in sizes.iter().enumerate() {
            let times = Samples::from_values(rounds.iter().filter_map(|round| Some(round.get(at)? * 1e3)).collect());
            let times = times.ok_or("no samples")?;
            let id = format!("journal.{name}.{size}");
            report.figure(&id, times.median(), "ms", None, Aim::None, n, Some(times.spread()));
        }
        let slopes: Option<Vec<f64>> = rounds.iter().map(|round| exponent(&as_f64, round)).collect();
        if let Some(slopes) = slopes.and_then(Samples::from_values) {
            let id = format!("journal.{name}.growth");
            report.figure(&id, slopes.median(), "exponent", Some("records"), Aim::AtMost(aim), n, None);
        }
    }
    Ok(())
}

/// The median time to read the tape of one of the runs, whichever; what is old lies in sealed segments.
fn read_tapes(root: &Path, size: usize) -> Result<f64, Failure> {
    let journal = Journal::open(JournalOptions::at(root))?;
    let runs = size as u64 / PER_RUN;
    let mut next = 0;
    // As many beforehand as there are threads and segments to open.
    let times = measure(200, 1_000, || {
        next = (next + 7919) % runs;
        let run = RunId::from_u128(1_000 + u128::from(next));
        let read = journal.read_blocking(move |reader| reader.run_tape(run, 1, usize::MAX));
        assert_eq!(read.map(|records| records.len() as u64).ok(), Some(PER_RUN));
    });
    runtime()?.block_on(journal.close())?;
    Ok(times.median())
}

fn fill(root: &Path, size: usize) -> Result<(), Failure> {
    let journal = Journal::open(JournalOptions::at(root))?;
    for first in (0..size).step_by(1_000) {
        let batch = (first..(first + 1_000).min(size))
            .map(|n| record(n, RunId::from_u128(1_000 + (n as u64 / PER_RUN) as u128), n as u64 % PER_RUN + 1))
            .collect();
        journal.append_blocking(batch)?;
    }
    runtime()?.block_on(journal.close())?;
    Ok(())
}
