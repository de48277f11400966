//! System calls of the journal and the artifact store that fail for a moment: nothing acknowledged is lost, every run goes on or ends by itself once the fault
//! is over, and the daemon says that it is not ready while it cannot record anything.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use palyra_client::Client;
use palyra_client::api::AbortRunParams;
use palyra_common::{RunId, RunLifecyclePhase};
use palyra_testkit::{Binary, Calls, DaemonOptions, IoFaults, Model, Receiver, TestDaemon, probe};
use rustix::io::Errno;
use serde_json::json;
use tempfile::TempDir;

use super::{PATIENCE, call, task, wait_for_phase, workspace};

const CALLS: [Calls; 7] =
    [Calls::Open, Calls::Read, Calls::Write, Calls::Sync, Calls::Truncate, Calls::Name, Calls::All];
/// Calls that a run at work need not make; at the moments at which they are made, the sweep over all system calls lets them fail.
const RARE: [Calls; 2] = [Calls::Read, Calls::Truncate];
/// Runs at work when a fault begins.
const RUNS: usize = 3;
/// Places of a kind of calls in `make test`.
const FEW_PLACES: u32 = 3;

struct Faulty {
    daemon: TestDaemon,
    faults: IoFaults,
    receiver: Receiver,
    workspace: TempDir,
    _home: TempDir,
}

impl Faulty {
    async fn start() -> Self {
        let faults = IoFaults::new().unwrap();
        let receiver = Receiver::start().unwrap();
        let home = TempDir::with_prefix("palyra-state-").unwrap();
        let state_root = home.path().canonicalize().unwrap().join("state");
        let text = "a text that is too long for a row of the journal and becomes an artifact ".repeat(20);
        let script = json!({ "turn": [
            call("probe.repeatable", json!({ "n": 1 })),
            call("palyra.fs.write", json!({ "path": "made.txt", "content": text })),
            { "text": text },
        ] });
        let options = DaemonOptions::new(Model::Scripted(script))
            .binary(Binary::PalyradProbe)
            .env(probe::SOCKET_VARIABLE, receiver.socket())
            .env("PALYRA_JOURNAL_INLINE_PAYLOAD_BYTES", "1024");
        let daemon = faults.in_daemon(options, &state_root).start().await.unwrap();
        Self { daemon, faults, receiver, workspace: workspace(), _home: home }
    }

    fn client(&self) -> Client {
        self.daemon.client()
    }

    /// Runs whose first call is under way.
    async fn runs_at_work(&self) -> Vec<RunId> {
        self.receiver.hold();
        let before = self.receiver.deliveries().len();
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            runs.push(self.client().create_run(&task("work", self.workspace.path())).await.unwrap().run_id);
        }
        assert!(self.receiver.wait_for(before + 1, PATIENCE), "{}", self.daemon.log());
        runs
    }

    async fn all_end(&self, runs: &[RunId], during: &str) {
        let began = Instant::now();
        for run_id in runs {
            loop {
                // What fails may be the look at the run, and whoever looks is told.
                let Ok(run) = self.client().run(*run_id).await.map(|detail| detail.run) else {
                    assert!(began.elapsed() < PATIENCE, "{during}: nobody can look at the run\n{}", self.daemon.log());
                    continue;
                };
                if run.phase.is_terminal() {
                    assert_eq!(run.phase, RunLifecyclePhase::Completed, "{during}: {run:?}\n{}", self.daemon.log());
                    break;
                }
                assert!(began.elapsed() < PATIENCE, "{during}: {run:?} never ended\n{}", self.daemon.log());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// What `/readyz` answers.
    fn ready(&self) -> bool {
        let mut stream = UnixStream::connect(self.daemon.state_root().join("palyrad.sock")).unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200")
    }

    async fn wait_ready(&self, wanted: bool) {
        let began = Instant::now();
        while self.ready() != wanted {
            assert!(began.elapsed() < PATIENCE, "/readyz never said {wanted}\n{}", self.daemon.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A run, which may be refused; one that was accepted ends as it should.
    async fn survives_one(&self, during: &str) {
        let created = self.client().create_run(&task("work", self.workspace.path())).await;
        let accepted: Vec<RunId> = created.ok().map(|run| run.run_id).into_iter().collect();
        self.all_end(&accepted, during).await;
        self.wait_ready(true).await;
    }

    /// No call that may happen once is asked about here, so runs only ever go on.
    async fn survives(&self, errno: Errno, calls: Calls) {
        let during = format!("{errno:?} on {calls:?}");
        let mut accepted = self.runs_at_work().await;
        self.faults.begin(errno, calls).unwrap();
        self.receiver.release();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(200) {
            let created = self.client().create_run(&task("more", self.workspace.path())).await;
            accepted.extend(created.ok().map(|run| run.run_id));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.faults.end().unwrap();
        self.all_end(&accepted, &during).await;
        self.wait_ready(true).await;
    }
}

macro_rules! every_call_fails_with {
    ($($test:ident: $errno:expr;)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            let faulty = Faulty::start().await;
            for calls in CALLS {
                let before = faulty.faults.end().unwrap();
                faulty.survives($errno, calls).await;
                let failed = faulty.faults.end().unwrap() - before;
                println!("{calls:?}: {failed} calls failed");
                assert!(failed > 0 || RARE.contains(&calls), "no call of the kind {calls:?} failed");
            }
            faulty.daemon.finish().await.unwrap();
        }
    )+};
}

every_call_fails_with! {
    runs_survive_input_output_errors: Errno::IO;
    runs_survive_a_disk_without_space: Errno::NOSPC;
    runs_survive_a_read_only_file_system: Errno::ROFS;
    runs_survive_a_process_without_descriptors: Errno::MFILE;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_cannot_read_its_journal_is_not_ready_and_recovers_by_itself() {
    let faulty = Faulty::start().await;
    let runs = faulty.runs_at_work().await;
    faulty.faults.begin(Errno::IO, Calls::Read).unwrap();
    faulty.receiver.release();
    let began = Instant::now();
    while faulty.ready() {
        assert!(began.elapsed() < PATIENCE, "/readyz says that all is well\n{}", faulty.daemon.log());
        // Whatever it comes to: it makes somebody read.
        let _ = faulty.client().run(runs[0]).await;
    }
    faulty.faults.end().unwrap();
    faulty.wait_ready(true).await;
    faulty.all_end(&runs, "reads that failed").await;
    faulty.daemon.finish().await.unwrap();
}

/// One call after the other fails, each once. `make test` tries a few places of each kind; `PALYRA_FAULTS` says how many, and `0` tries every one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_survives_any_single_call_that_fails() {
    let places = std::env::var("PALYRA_FAULTS").map_or(Ok(FEW_PLACES), |places| places.parse()).unwrap();
    let faulty = Faulty::start().await;
    faulty.receiver.release();
    for calls in CALLS.into_iter().filter(|calls| *calls != Calls::All) {
        faulty.faults.count(calls).unwrap();
        faulty.survives_one(&format!("{calls:?}")).await;
        let counted = faulty.faults.counted().unwrap();
        let step = if places == 0 { 1 } else { counted.div_ceil(places).max(1) };
        let mut failed = 0;
        for errno in [Errno::IO, Errno::NOSPC, Errno::ROFS, Errno::MFILE] {
            for at in (1..=counted).step_by(step as usize) {
                let before = faulty.faults.end().unwrap();
                faulty.faults.begin_at(errno, calls, at).unwrap();
                faulty.survives_one(&format!("{errno:?} on {calls:?} {at}")).await;
                failed += faulty.faults.end().unwrap() - before;
            }
        }
        println!("{calls:?}: {counted} places, {failed} calls failed");
        assert!(failed > 0 || counted == 0, "no call of the kind {calls:?} failed");
    }
    faulty.daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_cannot_record_is_not_ready_and_recovers_by_itself() {
    let faulty = Faulty::start().await;
    let runs = faulty.runs_at_work().await;
    faulty.faults.begin(Errno::IO, Calls::Sync).unwrap();
    faulty.receiver.release();
    // Longer than the journal tries by itself: it says so, and the runs wait.
    faulty.wait_ready(false).await;
    let refused = faulty.client().create_run(&task("more", faulty.workspace.path())).await.unwrap_err();
    assert!(refused.to_string().contains("journal"), "{refused}");
    let (client, run_id) = (faulty.client(), runs[0]);
    let aborted = tokio::spawn(async move { client.abort_run(run_id, &AbortRunParams::default()).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!faulty.ready(), "nothing was written yet");
    faulty.faults.end().unwrap();
    faulty.wait_ready(true).await;
    aborted.await.unwrap().unwrap();
    wait_for_phase(&faulty.client(), run_id, RunLifecyclePhase::Aborted).await;
    faulty.all_end(&runs[1..], "a long outage").await;
    faulty.daemon.finish().await.unwrap();
}
