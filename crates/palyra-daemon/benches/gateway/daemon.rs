//! A release daemon on a state of its own, and what its process holds.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use palyra_client::api::CreateRunParams;
use palyra_client::{Client, Endpoint, Follow, Trust};
use palyra_common::{RunId, RunLifecyclePhase, RunStreamBody, SecretString};
use tempfile::TempDir;

use crate::Failure;

/// Turns of the run that makes one session's hundred events: six or more for each, and a few around them.
const SESSION_TURNS: usize = 16;
/// Turns of the run that says a lot until it is told that it is enough. A summary begins it anew, so a few are plenty.
const MUCH_TURNS: usize = 8;
/// Deltas of each of its turns, and their size: the window of the scripted model takes a few such turns before it is summarised.
const MUCH_DELTAS: usize = 4;
const MUCH_BYTES: usize = 30_000;
/// Pause around each delta: about a quarter of a megabyte of events in a second.
const MUCH_PAUSE: u64 = 170;
/// What ends it.
pub(crate) const ENOUGH: &str = "that is enough";

/// How many ticks Linux counts in a second, for programs.
const TICKS: f64 = 100.0;

/// Where a daemon keeps its things; gone when dropped.
pub(crate) struct Place {
    root: PathBuf,
    _directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Result<Self, Failure> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let root = directory.path().canonicalize()?;
        std::fs::create_dir_all(root.join("work"))?;
        for n in 0..SESSION_TURNS.max(MUCH_TURNS) {
            std::fs::write(root.join("work").join(format!("{n}.txt")), format!("{n}\n"))?;
        }
        std::fs::write(root.join("script.toml"), script())?;
        Ok(Self { root, _directory: directory })
    }

    pub(crate) async fn start(&self) -> Result<Daemon, Failure> {
        self.start_with(Security::Plain).await
    }

    /// A daemon whose HTTP interface is secured or not.
    pub(crate) async fn start_with(&self, security: Security) -> Result<Daemon, Failure> {
        let state = self.root.join("state");
        let child = Command::new(env!("CARGO_BIN_EXE_palyrad"))
            .env_clear()
            .env("HOME", &self.root)
            .env("PALYRA_STATE_ROOT", &state)
            .env("PALYRA_DAEMON_HTTP_BIND", "127.0.0.1:0")
            .env("PALYRA_GRPC_BIND", "127.0.0.1:0")
            .env("PALYRA_QUIC_BIND", "127.0.0.1:0")
            .env("PALYRA_HTTP_TLS", if security == Security::Tls { "true" } else { "false" })
            .env("PALYRA_MODEL_PROVIDER", "scripted")
            .env("PALYRA_MODEL_SCRIPT", self.root.join("script.toml"))
            .env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write")
            .env("PALYRA_RUN_LOOP_REPEATS", "1000")
            .env("PALYRA_RUN_MAX_TURNS", "1000")
            .env("PALYRA_RUN_MAX_TOOL_CALLS", "1000")
            // An owner with a device certificate is counted like everybody else, and measures how fast it is answered.
            .env("PALYRA_RATE_PER_MINUTE", "1000000")
            .env("PALYRA_RATE_BURST", "100000")
            .env("PALYRA_LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .spawn()?;
        let mut daemon = Daemon {
            child,
            client: Client::new(Endpoint::unix(&state)),
            http: SocketAddr::from(([127, 0, 0, 1], 0)),
            grpc: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: String::new(),
            workspace: self.root.join("work").display().to_string(),
            state,
        };
        daemon.wait().await?;
        Ok(daemon)
    }
}

/// What the model says, by the task it is given.
fn script() -> String {
    let read =
        |n: usize| format!("[[script.turn.call]]\ntool = \"palyra.fs.read\"\narguments = {{ path = \"{n}.txt\" }}\n");
    let session: String = (0..SESSION_TURNS).map(|n| format!("[[script.turn]]\n{}", read(n))).collect();
    let words = "and so on ".repeat(MUCH_BYTES / 10);
    let much: String = (0..MUCH_TURNS)
        .map(|n| {
            let deltas: Vec<String> = (0..MUCH_DELTAS).map(|delta| format!("\"{n} {delta} {words}\"")).collect();
            format!("[[script.turn]]\ntext = [{}]\ndelay_ms = {MUCH_PAUSE}\n{}", deltas.join(", "), read(n))
        })
        .collect();
    format!(
        "[[script]]\nwhen = \"one tool\"\n[[script.turn]]\n[[script.turn.call]]\ntool = \"palyra.time.now\"\narguments = {{}}\n\
         [[script.turn]]\ntext = \"It is now.\"\n\n\
         [[script]]\nwhen = \"ask me\"\n[[script.turn]]\n[[script.turn.call]]\ntool = \"palyra.fs.write\"\n\
         arguments = {{ path = \"new.txt\", content = \"new\" }}\n[[script.turn]]\ntext = \"Written.\"\n\n\
         [[script]]\nwhen = \"many turns\"\n{session}[[script.turn]]\ntext = \"Done.\"\n\n\
         [[script]]\nwhen = \"say a lot\"\n{much}[[script.turn]]\ntext = \"Done.\"\n\n\
         [[script]]\nwhen = \"{ENOUGH}\"\n[[script.turn]]\ntext = \"Enough.\"\n\n\
         [[script]]\n[[script.turn]]\ntext = \"Hello.\"\n"
    )
}

/// What HTTP is spoken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Security {
    Plain,
    Tls,
}

pub(crate) struct Daemon {
    child: Child,
    /// A client at the Unix socket.
    pub(crate) client: Client,
    pub(crate) http: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) token: String,
    pub(crate) workspace: String,
    state: PathBuf,
}

impl Daemon {
    async fn wait(&mut self) -> Result<(), Failure> {
        for _ in 0..6_000 {
            if self.client.health().await.is_ok() {
                self.http = read(&self.state, "http.addr")?.parse()?;
                self.grpc = read(&self.state, "grpc.addr")?.parse()?;
                self.token = read(&self.state, "local.token")?;
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err("the daemon does not answer".into())
    }

    /// A client at the HTTP door.
    pub(crate) fn over_http(&self) -> Result<Client, Failure> {
        Ok(Client::new(Endpoint::loopback(&format!("http://{}", self.http), &self.state)?))
    }

    /// A client at the HTTP door of a daemon that speaks TLS there.
    pub(crate) fn over_tls(&self) -> Result<Client, Failure> {
        let url = format!("https://localhost:{}", self.http.port());
        let token = SecretString::new(self.token.clone());
        Ok(Client::new(Endpoint::remote(&url, token, &Trust::Authority(self.authority()))?))
    }

    /// The certificate of the authority that the daemon's own comes from.
    pub(crate) fn authority(&self) -> PathBuf {
        self.state.join("identity").join("ca.pem")
    }

    /// Anonymous memory of the process in megabytes: heaps and stacks, which is what clients can make grow.
    pub(crate) fn memory(&self) -> Result<f64, Failure> {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let line = rollup.lines().find(|line| line.starts_with("Pss_Anon:")).ok_or("no Pss_Anon line")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// A line of the process's status in megabytes: `VmRSS`, `VmHWM`.
    pub(crate) fn resident(&self, line: &str) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let found =
            status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':')).ok_or("no such line")?;
        let kilobytes: f64 = found.split_whitespace().next().ok_or("no number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// The state root.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// Where QUIC is served.
    pub(crate) fn quic(&self) -> Result<SocketAddr, Failure> {
        Ok(read(&self.state, "quic.addr")?.parse()?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) async fn begin(&self, prompt: &str) -> Result<RunId, Failure> {
        begin(&self.client, &self.workspace, prompt).await
    }

    pub(crate) async fn phase(&self, run_id: RunId) -> Result<RunLifecyclePhase, Failure> {
        Ok(self.client.run(run_id).await?.run.phase)
    }

    pub(crate) fn stop(&mut self) -> Result<(), Failure> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id())?).ok_or("no process")?;
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

/// Seconds of processor time that a process has taken, its own and the kernel's for it.
pub(crate) fn processor(pid: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // After the name, which may hold anything: state is field 3, the two times are fields 14 and 15.
    let (_, rest) = stat.rsplit_once(')').ok_or("no name")?;
    let mut times = rest.split_whitespace().skip(11);
    let mut next = || times.next().ok_or("no times").and_then(|ticks| ticks.parse::<f64>().map_err(|_| "no number"));
    Ok((next()? + next()?) / TICKS)
}

fn read(state: &Path, name: &str) -> Result<String, Failure> {
    Ok(std::fs::read_to_string(state.join(name))?.trim().to_owned())
}

/// A run in a session of its own.
pub(crate) fn task(workspace: &str, prompt: &str) -> CreateRunParams {
    CreateRunParams {
        attachments: Vec::new(),
        objective: None,
        max_attempts: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_id: None,
        session_key: None,
        prompt: prompt.to_owned(),
        workspace: workspace.to_owned(),
        model: None,
        agent: None,
        binding: None,
        mode: None,
        limits: None,
        idempotency_key: None,
    }
}

/// Begins a run in a session of its own.
pub(crate) async fn begin(client: &Client, workspace: &str, prompt: &str) -> Result<RunId, Failure> {
    Ok(client.create_run(&task(workspace, prompt)).await?.run_id)
}

/// Begins a run and follows it to its end; the number of its events if it was completed.
pub(crate) async fn run(client: &Client, workspace: &str, prompt: &str) -> Result<u64, Failure> {
    let run_id = begin(client, workspace, prompt).await?;
    let mut tape = client.tape(run_id, 1, Follow::UntilEnd);
    let (mut ended, mut events) = (None, 0);
    while let Some(event) = tape.next().await? {
        events = event.seq;
        if let RunStreamBody::Status(status) = event.body {
            ended = Some(status.phase);
        }
    }
    if ended == Some(RunLifecyclePhase::Completed) {
        Ok(events)
    } else {
        Err(format!("the run ended as {ended:?}").into())
    }
}
