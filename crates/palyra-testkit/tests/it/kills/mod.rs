//! The kill battery: a daemon under load is killed at random moments, hundreds or thousands of times, and must lose nothing, repeat nothing and leave nothing stuck.
//!
//! `work` says what the load is: files, MCP servers on standard streams and over HTTP, questions that are answered after a restart, inputs queued to sessions,
//! attachments, canvases, runs paused and resumed. `job` drives one piece of it over as many lives of the daemon as it takes; `servers` counts effects outside the
//! daemon; this file kills. In between the daemon is left alone until every job is over, and at the end the whole journal is read back and compared with all
//! that was ever acknowledged.
//!
//! `make test` takes a sample; `make test-all` sets `PALYRA_KILLS`. The moments follow from `PALYRA_KILLS_SEED`, which is printed; what the daemon is doing
//! then does not follow from it.

mod job;
mod servers;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use palyra_client::Follow;
use palyra_client::api::ListRunsParams;
use palyra_common::RunId;
use palyra_figures::{Aim, Report};
use palyra_testkit::model_server::ModelServer;
use palyra_testkit::{DaemonOptions, Exit, Model, Random, TestContext, TestDaemon, assert_all_runs_replay};
use serde_json::json;
use tokio::task::JoinSet;

use self::job::{Defect, Job, Life, Step, Stop, digest};
use self::servers::Ledger;
use self::work::Kind;

/// Kills in `make test`.
const SAMPLE: u64 = 30;
/// Jobs at the same time.
const JOBS: usize = 8;
/// A daemon is killed so long after it was ready, at the latest.
const LONGEST_LIFE: u64 = 600;
/// On a busy machine nothing would ever be finished in so short lives, and only beginnings would be killed: lives become longer, up to so many times, as long as
/// no job ends in so many of them.
const LONGEST_STRETCH: u64 = 8;
const BARREN_LIVES: u64 = 4;
/// One life in so many ends before the daemon is ready.
const KILLED_AT_START: u64 = 8;
/// After so many kills everything under way is brought to its end.
const SETTLE_AFTER: u64 = 100;
/// What the whole battery must show.
const WHOLE: u64 = 2000;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_under_load_lose_nothing_repeat_nothing_and_leave_nothing_stuck() {
    let whole = setting("PALYRA_KILLS");
    let kills = whole.unwrap_or(SAMPLE);
    let seed = setting("PALYRA_KILLS_SEED").unwrap_or(0x6b69_6c6c);
    println!("kill battery: {kills} kills (PALYRA_KILLS), seed {seed} (PALYRA_KILLS_SEED)");
    let began = Instant::now();
    let mut battery = Battery::start(seed).await.unwrap();
    let ended = battery.run(kills).await;
    battery.report(whole.is_some(), began);
    ended.with_context(|| battery.daemon.log()).unwrap();
    assert!(battery.defects.is_empty(), "{:#?}\n{}", battery.defects, battery.daemon.log());
    let missing: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| !battery.finished.contains_key(kind)).collect();
    assert!(missing.is_empty(), "no job of the kinds {missing:?} was finished");
}

/// The battery can only be trusted if it sees what it looks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_names_a_second_effect_a_changed_event_and_a_run_that_nobody_asked_for() {
    let mut battery = Battery::start(1).await.unwrap();
    battery.refill().unwrap();
    battery.settle().await.unwrap();
    assert!(battery.defects.is_empty(), "{:#?}", battery.defects);
    let entry = battery.ledger.entries().pop().unwrap();
    battery.ledger.record(&entry);
    let (forgotten, _) = battery.seen.pop_first().unwrap();
    let (changed, mut events) = battery.seen.pop_first().unwrap();
    events[0] ^= 1;
    battery.seen.insert(changed, events);
    assert!(battery.audit().await.is_err(), "more runs replay than were seen");
    let named = |wanted: Defect, what: &str| {
        battery.defects.iter().any(|(defect, text)| *defect == wanted && text.contains(what))
    };
    assert!(named(Defect::Twice, &entry), "{:?}", battery.defects);
    assert!(named(Defect::Twice, &forgotten.to_string()), "{:?}", battery.defects);
    assert!(named(Defect::Lost, &changed.to_string()), "{:?}", battery.defects);
    assert_eq!(battery.defects.len(), 3, "{:?}", battery.defects);
}

struct Battery {
    daemon: TestDaemon,
    model: ModelServer,
    ledger: Ledger,
    context: TestContext,
    random: Random,
    jobs: Vec<Job>,
    made: u64,
    life: u64,
    kills: u64,
    stretch: u64,
    barren: u64,
    finished: BTreeMap<Kind, u64>,
    acknowledged: u64,
    repeated: u64,
    unknown_outcomes: usize,
    /// All that was seen of runs whose jobs are over.
    seen: BTreeMap<RunId, Vec<u64>>,
    defects: Vec<(Defect, String)>,
}

impl Battery {
    async fn start(seed: u64) -> Result<Self> {
        let context = TestContext::new()?;
        let ledger = Ledger::add_servers(&context)?;
        let model = ModelServer::start(Vec::new())?;
        let options = DaemonOptions::new(Model::Server(model.base_url())).state_root(&context.state_root());
        let daemon = options.start().await?;
        Ok(Self {
            daemon,
            model,
            ledger,
            context,
            random: Random::seeded(seed),
            jobs: Vec::new(),
            made: 0,
            life: 1,
            kills: 0,
            stretch: 1,
            barren: 0,
            finished: BTreeMap::new(),
            acknowledged: 0,
            repeated: 0,
            unknown_outcomes: 0,
            seen: BTreeMap::new(),
            defects: Vec::new(),
        })
    }

    async fn run(&mut self, kills: u64) -> Result<()> {
        while self.kills < kills && self.defects.is_empty() {
            self.refill()?;
            let at_start = self.random.below(KILLED_AT_START) == 0;
            if !at_start {
                self.daemon.wait_healthy().await?;
            }
            let working = self.work(false);
            tokio::time::sleep(Duration::from_millis(self.random.below(LONGEST_LIFE * self.stretch))).await;
            self.daemon.kill9()?;
            self.kills += 1;
            let before = self.jobs_over();
            self.take_back(working).await;
            self.adapt(self.jobs_over() > before);
            self.daemon.respawn(None)?;
            self.life += 1;
            if self.kills.is_multiple_of(SETTLE_AFTER) {
                self.settle().await?;
                println!("{} kills, {} jobs over", self.kills, self.jobs_over());
            }
        }
        self.settle().await?;
        if self.defects.is_empty() { self.audit().await } else { Ok(()) }
    }

    fn jobs_over(&self) -> u64 {
        self.finished.values().sum()
    }

    fn adapt(&mut self, progress: bool) {
        if progress {
            self.barren = 0;
            self.stretch = self.stretch.saturating_sub(1).max(1);
            return;
        }
        self.barren += 1;
        if self.barren >= BARREN_LIVES {
            self.barren = 0;
            self.stretch = (self.stretch + 1).min(LONGEST_STRETCH);
        }
    }

    /// Adds jobs, each kind in its turn, and tells the model about them.
    fn refill(&mut self) -> Result<()> {
        while self.jobs.len() < JOBS {
            let kind = Kind::ALL[self.made as usize % Kind::ALL.len()];
            self.made += 1;
            // No name is part of another.
            let token = format!("job{:05}", self.made);
            let workspace = self.context.root().join("work").join(&token);
            std::fs::create_dir_all(&workspace)?;
            self.jobs.push(Job::new(kind, token, workspace, self.random.next_u64()));
        }
        let scenes: Vec<_> = self.jobs.iter().flat_map(Job::scenes).collect();
        self.model.follow_script(serde_json::from_value(json!({ "script": scenes }))?);
        Ok(())
    }

    /// Drives all jobs at once until they are over or the daemon goes away.
    fn work(&mut self, settling: bool) -> JoinSet<(Job, Step<()>)> {
        let life = Life { client: self.daemon.client(), number: self.life, ledger: self.ledger.clone(), settling };
        let mut working = JoinSet::new();
        for mut job in self.jobs.drain(..) {
            let life = life.clone();
            working.spawn(async move {
                let step = job.drive(&life).await;
                (job, step)
            });
        }
        working
    }

    async fn take_back(&mut self, mut working: JoinSet<(Job, Step<()>)>) {
        while let Some(driven) = working.join_next().await {
            let (job, step) = driven.unwrap();
            match step {
                Ok(()) => self.over(job),
                Err(Stop::Gone | Stop::Later) => self.jobs.push(job),
                Err(Stop::Wrong(defect, what)) => {
                    self.defects.push((defect, format!("{:?}, life {}: {what}", job.kind, self.life)));
                    self.over(job);
                }
            }
        }
    }

    fn over(&mut self, job: Job) {
        *self.finished.entry(job.kind).or_default() += 1;
        self.acknowledged += job.acknowledged;
        self.repeated += job.repeated;
        for (run_id, seen) in job.runs {
            self.unknown_outcomes += seen.unknown_outcomes;
            self.seen.insert(run_id, seen.events);
        }
        let _ = std::fs::remove_dir_all(job.workspace);
    }

    /// Leaves the daemon alone until every job is over.
    async fn settle(&mut self) -> Result<()> {
        self.daemon.wait_healthy().await?;
        let working = self.work(true);
        self.take_back(working).await;
        ensure!(self.jobs.is_empty(), "the daemon went away by itself: {:?}", self.daemon.exited()?);
        Ok(())
    }

    /// Reads everything back and compares it with what was acknowledged.
    async fn audit(&mut self) -> Result<()> {
        let client = self.daemon.client();
        for (run_id, seen) in &self.seen {
            let mut tape = client.tape(*run_id, 1, Follow::No);
            let mut now = Vec::new();
            while let Some(event) = tape.next().await? {
                now.push(digest(&event));
            }
            if now != *seen {
                let what = format!("run {run_id}: {} events were seen, {} are there", seen.len(), now.len());
                self.defects.push((Defect::Lost, what));
            }
        }
        let mut before = None;
        loop {
            let page = client.runs(&ListRunsParams { limit: Some(100), before, ..ListRunsParams::default() }).await?;
            for run in &page.runs {
                if !self.seen.contains_key(&run.run_id) {
                    self.defects.push((Defect::Twice, format!("nobody asked for run {} ({})", run.run_id, run.prompt)));
                }
                if !run.phase.is_terminal() {
                    self.defects.push((Defect::Stuck, format!("run {} is {}", run.run_id, run.phase)));
                }
            }
            before = page.next_before;
            if before.is_none() {
                break;
            }
        }
        let mut once = BTreeSet::new();
        for entry in self.ledger.entries() {
            if !once.insert(entry.clone()) {
                self.defects.push((Defect::Twice, format!("{entry} arrived twice")));
            }
        }
        ensure!(assert_all_runs_replay(&client).await? == self.seen.len(), "other runs replayed than were seen");
        let exit = self.daemon.stop().await?;
        ensure!(exit == Exit::Code(0), "the daemon ended with {exit:?}");
        self.daemon.verify_journal()
    }

    fn count(&self, wanted: Defect) -> f64 {
        self.defects.iter().filter(|(defect, _)| *defect == wanted).count() as f64
    }

    fn report(&self, whole: bool, began: Instant) {
        println!(
            "kill battery: {} kills, {} runs, {} commands acknowledged, {} repeated under their keys, {} outcomes asked about, \
             jobs {:?}, {} defects ({:.0?})",
            self.kills,
            self.seen.len(),
            self.acknowledged,
            self.repeated,
            self.unknown_outcomes,
            self.finished,
            self.defects.len(),
            began.elapsed()
        );
        if !whole {
            return;
        }
        let n = self.kills;
        let mut figures = Report::new("kills");
        figures
            .figure("crash.kills", n as f64, "kills", None, Aim::AtLeast(WHOLE as f64), n, None)
            .figure("crash.stuck", self.count(Defect::Stuck), "runs", None, Aim::AtMost(0.0), n, None)
            .figure("crash.kills.lost", self.count(Defect::Lost), "records", None, Aim::AtMost(0.0), n, None)
            .figure("crash.kills.twice", self.count(Defect::Twice), "effects", None, Aim::AtMost(0.0), n, None)
            .figure("crash.kills.dishonest", self.count(Defect::Dishonest), "answers", None, Aim::AtMost(0.0), n, None)
            .figure("crash.kills.runs", self.seen.len() as f64, "runs", None, Aim::None, n, None)
            .figure("crash.kills.commands", self.acknowledged as f64, "commands", None, Aim::None, n, None);
        figures.note("load: files, MCP over stdio and HTTP, approvals answered after a restart, queued inputs, attachments, canvases, pause and resume");
        figures.finish().unwrap();
    }
}
