//! The daemon as its users meet it: the release binary, its Unix socket, a model that answers at once, every record durable.
//!
//! - `run.rateN`: finished runs per second with N runs at once, one tool call each, from the request to the terminal event.
//! - `run.latency1`: one run without a tool, alone; `run.overhead`: what each further turn with one tool call adds.
//! - `start.healthy`: from starting the process to the first healthy answer, with a state of 10⁶ records, against a server that only answers.
//! - `memory.idle`: proportional set size of a daemon that has nothing to do.
//! - growth of start, list and tape with the number of records.
//!
//! The load comes from this process on the same cores. The scripted provider stands for an instant model. Left out: the network, real models.
//! `PALYRA_FIGURES_RECORDS` caps the sizes for a quick look.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use palyra_client::api::{CreateRunParams, ListRunsParams};
use palyra_client::{Client, Follow};
use palyra_common::RunLifecyclePhase;
use palyra_figures::{Aim, Report, Samples, exponent};
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const SCRIPT: &str = r#"
[[script]]
when = "one tool"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.time.now"
arguments = {}
[[script.turn]]
text = "It is now."

[[script]]
when = "many turns"
TURNS
[[script.turn]]
text = "Done."

[[script]]
[[script.turn]]
text = "Hello."
"#;
/// Turns with a tool call in the run that `run.overhead` is taken from.
const MANY: usize = 16;
/// Records that one run with one tool call leaves, to know when a size is reached.
const BARE: &str = "--bare-server";

fn main() -> Result<(), Failure> {
    if let Some(socket) = std::env::args().skip_while(|argument| argument != BARE).nth(1) {
        return bare_server(Path::new(&socket));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(figures())
}

async fn figures() -> Result<(), Failure> {
    let mut report = Report::new("run");
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let place = Place::new(directory.path())?;
    let fdatasync = fdatasync(directory.path())?;
    report.figure("disk.fdatasync", fdatasync.median() * 1e3, "ms", None, Aim::None, 200, Some(fdatasync.spread()));
    {
        let mut daemon = place.start().await?;
        latencies(&mut report, &daemon, fdatasync.median()).await?;
        for at_once in [1, 8, 64] {
            rate(&mut report, &daemon, at_once).await?;
        }
        daemon.stop()?;
    }
    idle_memory(&mut report).await?;
    growth(&mut report).await?;
    report.finish()?;
    Ok(())
}

async fn latencies(report: &mut Report, daemon: &Daemon, fdatasync: f64) -> Result<(), Failure> {
    for _ in 0..50 {
        daemon.run("hello").await?;
    }
    let mut plain = Vec::new();
    let mut long = Vec::new();
    for _ in 0..200 {
        plain.push(daemon.run("hello").await?);
    }
    for _ in 0..40 {
        long.push(daemon.run("many turns").await?);
    }
    let plain = Samples::from_values(plain).ok_or("no samples")?;
    let per_turn: Vec<f64> = long.iter().map(|seconds| (seconds - plain.median()) / MANY as f64).collect();
    let turn = Samples::from_values(per_turn).ok_or("no samples")?;
    let aim = Aim::AtMost(4.0 * fdatasync * 1e3 + 2.0);
    report.figure(
        "run.latency1",
        plain.median() * 1e3,
        "ms",
        Some("4 fdatasyncs + 2 ms"),
        aim,
        200,
        Some(plain.spread()),
    );
    report.figure("run.latency1.p99", plain.p99() * 1e3, "ms", None, Aim::None, 200, None);
    let aim = Aim::AtMost(2.0 * fdatasync * 1e3 + 1.0);
    report.figure("run.overhead", turn.median() * 1e3, "ms", Some("2 fdatasyncs + 1 ms"), aim, 40, Some(turn.spread()));
    Ok(())
}

async fn rate(report: &mut Report, daemon: &Daemon, at_once: usize) -> Result<(), Failure> {
    daemon.batch(at_once * 2, at_once).await?;
    let mut rates = Vec::new();
    let mut added = Vec::new();
    let runs = if at_once == 1 { 200 } else { 2_000 };
    for _ in 0..5 {
        let (rate, latencies) = daemon.batch(runs, at_once).await?;
        rates.push(rate);
        added.extend(latencies);
    }
    let rates = Samples::from_values(rates).ok_or("no samples")?;
    let added = Samples::from_values(added).ok_or("no samples")?;
    let aim = if at_once == 64 { Aim::AtLeast(1_000.0) } else { Aim::None };
    let n = 5 * runs as u64;
    report.figure(&format!("run.rate{at_once}"), rates.median(), "runs/s", None, aim, n, Some(rates.spread()));
    report.figure(
        &format!("run.latency{at_once}.one_tool"),
        added.median() * 1e3,
        "ms",
        None,
        Aim::None,
        n,
        Some(added.spread()),
    );
    Ok(())
}

/// A fresh daemon, left alone for a moment.
async fn idle_memory(report: &mut Report) -> Result<(), Failure> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let place = Place::new(directory.path())?;
    let mut daemon = place.start().await?;
    // The sandbox is proven after start; only then is the daemon idle.
    tokio::time::sleep(Duration::from_secs(10)).await;
    report.figure("memory.idle", pss(daemon.child.id())?, "MB", None, Aim::AtMost(25.0), 1, None);
    daemon.stop()?;
    Ok(())
}

/// A state of its own, which the loads above have not filled.
async fn growth(report: &mut Report) -> Result<(), Failure> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let place = &Place::new(directory.path())?;
    let cap = std::env::var("PALYRA_FIGURES_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let sizes: Vec<u64> = [10_000, 100_000, 1_000_000].into_iter().filter(|size| *size <= cap).collect();
    let (mut start, mut list, mut tape) = (Vec::new(), Vec::new(), Vec::new());
    let mut reached = Vec::new();
    for size in &sizes {
        reached.push(fill(place, *size).await?);
        let starts = starts(place).await?;
        start.push(starts.median());
        let mut daemon = place.start().await?;
        list.push(
            timed(30, async || {
                let listed =
                    daemon.client.runs(&ListRunsParams { limit: Some(50), ..ListRunsParams::default() }).await?;
                assert_eq!(listed.runs.len(), 50);
                Ok(())
            })
            .await?,
        );
        let runs = daemon.client.runs(&ListRunsParams { limit: Some(200), ..ListRunsParams::default() }).await?;
        let mut next = runs.runs.iter().cycle();
        tape.push(
            timed(60, async || {
                let run = next.next().ok_or("no runs")?;
                let mut tape = daemon.client.tape(run.run_id, 1, Follow::No);
                while tape.next().await?.is_some() {}
                Ok(())
            })
            .await?,
        );
        daemon.stop()?;
        if Some(size) == sizes.last() {
            let bare = bare_starts(place).await?;
            let ratio = starts.median() / bare.median();
            report.figure(
                "start.healthy",
                ratio,
                "ratio",
                Some("an empty server"),
                Aim::AtMost(3.0),
                15,
                Some(starts.spread()),
            );
            report.figure(
                "start.healthy.ms",
                starts.median() * 1e3,
                "ms",
                None,
                Aim::AtMost(50.0),
                15,
                Some(starts.spread()),
            );
        }
    }
    let sizes_f: Vec<f64> = reached.iter().map(|records| *records as f64).collect();
    for (name, values) in [("start", &start), ("list", &list), ("tape", &tape)] {
        for (size, value) in sizes.iter().zip(values) {
            report.figure(&format!("daemon.{name}.{size}"), value * 1e3, "ms", None, Aim::None, 1, None);
        }
        if let Some(slope) = exponent(&sizes_f, values) {
            report.figure(
                &format!("daemon.{name}.growth"),
                slope,
                "exponent",
                Some("records"),
                Aim::AtMost(0.2),
                3,
                None,
            );
        }
    }
    Ok(())
}

/// Adds finished runs until the journal has about `wanted` records; says how many it has.
async fn fill(place: &Place, wanted: u64) -> Result<u64, Failure> {
    let mut daemon = place.start().await?;
    loop {
        let records = daemon.records().await?;
        if records >= wanted {
            daemon.stop()?;
            return Ok(records);
        }
        let runs = usize::try_from((wanted - records) / 15)?.clamp(64, 4_000);
        daemon.batch(runs, 64).await?;
    }
}

async fn starts(place: &Place) -> Result<Samples, Failure> {
    let mut seconds = Vec::new();
    for _ in 0..15 {
        let began = Instant::now();
        let mut daemon = place.start().await?;
        seconds.push(began.elapsed().as_secs_f64());
        daemon.stop()?;
    }
    Samples::from_values(seconds).ok_or_else(|| "no samples".into())
}

async fn bare_starts(place: &Place) -> Result<Samples, Failure> {
    let state = place.root.join("bare");
    std::fs::create_dir_all(&state)?;
    let socket = state.join("palyrad.sock");
    let mut seconds = Vec::new();
    for _ in 0..15 {
        let began = Instant::now();
        let mut child = Command::new(std::env::current_exe()?).arg(BARE).arg(&socket).stdin(Stdio::null()).spawn()?;
        answers(&socket).await?;
        seconds.push(began.elapsed().as_secs_f64());
        child.kill()?;
        child.wait()?;
        let _ = std::fs::remove_file(&socket);
    }
    Samples::from_values(seconds).ok_or_else(|| "no samples".into())
}

/// Waits for the first answer on a socket, whatever it says.
async fn answers(socket: &Path) -> Result<(), Failure> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    for _ in 0..100_000 {
        if let Ok(mut stream) = tokio::net::UnixStream::connect(socket).await {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            if answer.starts_with(b"HTTP/1.1 200") {
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    Err("no answer".into())
}

/// The reference of `start.healthy`: axum with one route, on a Unix socket.
fn bare_server(socket: &Path) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let router = axum::Router::new().route("/healthz", axum::routing::get(|| async { "ok" }));
        axum::serve(tokio::net::UnixListener::bind(socket)?, router).await?;
        Ok(())
    })
}

/// Where a daemon keeps its things.
struct Place {
    root: PathBuf,
}

impl Place {
    fn new(root: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(root.join("work"))?;
        let turn =
            "[[script.turn]]\n[[script.turn.call]]\ntool = \"palyra.fs.read\"\narguments = { path = \"NAME\" }\n";
        let turns: String = (0..MANY).map(|n| turn.replace("NAME", &format!("{n}.txt"))).collect();
        for n in 0..MANY {
            std::fs::write(root.join("work").join(format!("{n}.txt")), format!("{n}\n"))?;
        }
        std::fs::write(root.join("script.toml"), SCRIPT.replace("TURNS", &turns))?;
        Ok(Self { root: root.canonicalize()? })
    }

    async fn start(&self) -> Result<Daemon, Failure> {
        let state = self.root.join("state");
        let child = Command::new(env!("CARGO_BIN_EXE_palyrad"))
            .env_clear()
            .env("HOME", &self.root)
            .env("PALYRA_STATE_ROOT", &state)
            .env("PALYRA_DAEMON_HTTP_BIND", "127.0.0.1:0")
            .env("PALYRA_GRPC_BIND", "127.0.0.1:0")
            .env("PALYRA_QUIC_BIND", "127.0.0.1:0")
            .env("PALYRA_MODEL_PROVIDER", "scripted")
            .env("PALYRA_MODEL_SCRIPT", self.root.join("script.toml"))
            .env("PALYRA_RUN_MAX_CONCURRENT", "128")
            .env("PALYRA_LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .spawn()?;
        answers(&state.join("palyrad.sock")).await?;
        Ok(Daemon {
            child,
            client: Client::connect(&state).await?,
            workspace: self.root.join("work").display().to_string(),
        })
    }
}

struct Daemon {
    child: Child,
    client: Client,
    workspace: String,
}

impl Daemon {
    /// Seconds from asking for a run to its terminal event.
    async fn run(&self, prompt: &str) -> Result<f64, Failure> {
        run(&self.client, &self.workspace, prompt).await
    }

    /// Many runs with one tool call, `at_once` at a time: runs per second, and the seconds of each.
    async fn batch(&self, runs: usize, at_once: usize) -> Result<(f64, Vec<f64>), Failure> {
        let began = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..at_once {
            let (client, workspace) = (self.client.clone(), self.workspace.clone());
            workers.spawn(async move {
                let mut seconds = Vec::new();
                for _ in 0..runs / at_once {
                    seconds.push(run(&client, &workspace, "one tool").await?);
                }
                Ok::<_, Failure>(seconds)
            });
        }
        let mut seconds = Vec::new();
        while let Some(done) = workers.join_next().await {
            seconds.extend(done??);
        }
        Ok((seconds.len() as f64 / began.elapsed().as_secs_f64(), seconds))
    }

    async fn records(&self) -> Result<u64, Failure> {
        let params = palyra_client::api::TailJournalParams { n: Some(1), ..Default::default() };
        let mut tail = self.client.journal_tail(&params).await?;
        Ok(tail.next().await?.map_or(0, |record| record.seq))
    }

    fn stop(&mut self) -> Result<(), Failure> {
        let pid = i32::try_from(self.child.id())?;
        let pid = rustix::process::Pid::from_raw(pid).ok_or("no process")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the daemon ended with {status}").into()) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn run(client: &Client, workspace: &str, prompt: &str) -> Result<f64, Failure> {
    let params = CreateRunParams {
        attachments: Vec::new(),
        objective: None,
        max_attempts: None,
        binding: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_id: None,
        session_key: None,
        prompt: prompt.to_owned(),
        workspace: workspace.to_owned(),
        model: None,
        agent: None,
        mode: None,
        limits: None,
        idempotency_key: None,
    };
    let began = Instant::now();
    let run = client.create_run(&params).await?;
    let mut tape = client.tape(run.run_id, 1, Follow::UntilEnd);
    let mut ended = None;
    while let Some(event) = tape.next().await? {
        if let palyra_common::RunStreamBody::Status(status) = event.body {
            ended = Some(status.phase);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    if ended == Some(RunLifecyclePhase::Completed) {
        Ok(seconds)
    } else {
        Err(format!("the run ended as {ended:?}").into())
    }
}

async fn timed(times: usize, mut work: impl AsyncFnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    work().await?;
    let mut seconds = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        work().await?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok(Samples::from_values(seconds).ok_or("no samples")?.median())
}

fn fdatasync(directory: &Path) -> Result<Samples, Failure> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(directory.join("raw"))?;
    let mut seconds = Vec::new();
    for n in 0..200_u64 {
        let began = Instant::now();
        file.write_all_at(&[7; 4096], n * 4096)?;
        file.sync_data()?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    Samples::from_values(seconds).ok_or_else(|| "no samples".into())
}

/// Megabytes of memory that the process accounts for, shared pages divided among their users.
fn pss(pid: u32) -> Result<f64, Failure> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).ok_or("no Pss line")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kilobytes / 1024.0)
}
