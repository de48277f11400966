//! `gateway.stopped_reader`: what somebody costs who stops reading for a minute while the run says a lot.
//!
//! Each reader has a daemon of its own; all of them work at the same time, since they mostly wait. The one that stops is compared with one that reads
//! the same run at the same time.

use std::time::{Duration, Instant};

use palyra_client::api::RunInputParams;
use palyra_common::{InputMode, RunId, RunLifecyclePhase};
use palyra_figures::{Aim, Report};
use tokio::task::JoinSet;

use crate::daemon::{Daemon, ENOUGH, Place};
use crate::reader::{Kind, Reader};
use crate::{Failure, samples};

const STOP: Duration = Duration::from_secs(60);
const PAIRS: usize = 3;
/// Events after which a reader stops.
const FIRST: u64 = 8;
/// Events that the run has at least, or it did not say a lot: some eight megabytes.
const EVENTS: u64 = 250;
/// After this time the run is told that it is enough.
const TALK: Duration = Duration::from_secs(45);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    Reads,
    Stops,
}

struct Seen {
    kind: Kind,
    habit: Habit,
    pair: usize,
    /// Megabytes added at most, while the reader stopped.
    peak: f64,
    /// Megabytes added when the minute was over.
    held: f64,
    /// Whether the run was completed by then.
    finished: bool,
}

pub(crate) async fn figures(report: &mut Report) -> Result<(), Failure> {
    let mut watched = JoinSet::new();
    for pair in 0..PAIRS {
        for kind in Kind::ALL {
            for habit in [Habit::Reads, Habit::Stops] {
                watched.spawn(watch(kind, habit, pair));
            }
        }
    }
    let mut seen = Vec::new();
    while let Some(one) = watched.join_next().await {
        seen.push(one??);
    }
    let unfinished = seen.iter().filter(|seen| !seen.finished).count();
    for kind in Kind::ALL {
        let of = |habit, pair| seen.iter().find(|seen| (seen.kind, seen.habit, seen.pair) == (kind, habit, pair));
        let (mut peak, mut held, mut reading) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            let (Some(reads), Some(stops)) = (of(Habit::Reads, pair), of(Habit::Stops, pair)) else { continue };
            peak.push(stops.peak - reads.peak);
            held.push(stops.held - reads.held);
            reading.push(reads.peak);
        }
        let (peak, held, reading) = (samples(peak)?, samples(held)?, samples(reading)?);
        let id = format!("gateway.stopped_reader.{}", kind.name());
        let n = PAIRS as u64;
        let reference = Some("added beyond a reader that reads");
        report.figure(&id, peak.median(), "MB", reference, Aim::AtMost(1.0), n, None);
        report.figure(&format!("{id}.held"), held.median(), "MB", reference, Aim::AtMost(1.0), n, None);
        report.figure(&format!("{id}.reading"), reading.median(), "MB", None, Aim::None, n, None);
    }
    report.figure(
        "gateway.stopped_reader.unfinished",
        unfinished as f64,
        "runs",
        None,
        Aim::AtMost(0.0),
        6 * PAIRS as u64,
        None,
    );
    Ok(())
}

async fn watch(kind: Kind, habit: Habit, pair: usize) -> Result<Seen, Failure> {
    let place = Place::new()?;
    let mut daemon = place.start().await?;
    // What a first run and a first stream need once and for all is there before anything is measured.
    let warm = daemon.begin("many turns").await?;
    let mut reader = Reader::open(&daemon, kind, warm).await?;
    while reader.next().await?.is_some() {}
    drop(reader);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = daemon.memory()?;

    let run_id = daemon.begin("say a lot").await?;
    let mut reader = Reader::open(&daemon, kind, run_id).await?;
    reader.read_to(FIRST).await?;
    let memory = async {
        let (memory, said) = tokio::join!(sampled(&daemon), say_enough(&daemon, run_id));
        said?;
        memory
    };
    let (memory, rest) = match habit {
        Habit::Reads => {
            let (memory, last) = tokio::join!(memory, to_the_end(&mut reader));
            (memory?, last?)
        }
        Habit::Stops => (memory.await?, 0),
    };
    let finished = daemon.phase(run_id).await? == RunLifecyclePhase::Completed;
    // Nothing was lost by not reading.
    let last = if habit == Habit::Stops { to_the_end(&mut reader).await? } else { rest };
    if last < EVENTS {
        return Err(format!("the run has {last} events").into());
    }
    daemon.stop()?;
    let peak = memory.iter().copied().fold(0.0, f64::max) - before;
    let held = memory.last().copied().unwrap_or_default() - before;
    Ok(Seen { kind, habit, pair, peak, held, finished })
}

async fn say_enough(daemon: &Daemon, run_id: RunId) -> Result<(), Failure> {
    tokio::time::sleep(TALK).await;
    let params = RunInputParams { text: ENOUGH.to_owned(), mode: InputMode::FollowUp };
    daemon.client.send_input(run_id, &params).await?;
    Ok(())
}

/// The memory of a daemon, once a second for the time that a reader stops.
async fn sampled(daemon: &Daemon) -> Result<Vec<f64>, Failure> {
    let began = Instant::now();
    let mut memory = Vec::new();
    while began.elapsed() < STOP {
        tokio::time::sleep(Duration::from_secs(1)).await;
        memory.push(daemon.memory()?);
    }
    Ok(memory)
}

/// Reads what is left, which has no gap; the last position.
async fn to_the_end(reader: &mut Reader) -> Result<u64, Failure> {
    let mut last = FIRST;
    while let Some(seq) = reader.next().await? {
        if seq != last + 1 {
            return Err(format!("event {seq} follows event {last}").into());
        }
        last = seq;
    }
    Ok(last)
}
