//! A daemon of its own for each test: the real binary, a temporary state root, nothing inherited from the environment.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use palyra_client::api::{CreateRunParams, RunView};
use palyra_client::{Client, Endpoint, Follow};
use palyra_common::{RunId, RunStreamEvent};
use tempfile::TempDir;

/// Longer than anything here takes, so that a hang fails instead of blocking.
const PATIENCE: Duration = Duration::from_secs(30);

/// A place for a daemon: state root, workspace, settings.
pub(crate) struct Place {
    directory: TempDir,
    variables: Vec<(String, String)>,
    /// How many files the daemon may open, if fewer than this process.
    files: Option<u32>,
}

impl Place {
    /// A fresh place with HTTP, gRPC and QUIC at any free ports of the loopback interface.
    pub(crate) fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap(), variables: Vec::new(), files: None };
        std::fs::create_dir(place.workspace()).unwrap();
        // Tokens of tests work where the tests do; what they may not do is tried with other directories.
        let shared = format!("* {}", place.workspace().display());
        let place = place.with("PALYRA_WORKSPACES_ROOTS", &shared);
        let binds = ["PALYRA_DAEMON_HTTP_BIND", "PALYRA_GRPC_BIND", "PALYRA_QUIC_BIND"];
        binds.into_iter().fold(place, |place, name| place.with(name, "127.0.0.1:0"))
    }

    /// The same with a variable set.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same where the daemon may open no more files than this, so that few connections are many.
    pub(crate) fn with_files(mut self, files: u32) -> Self {
        self.files = Some(files);
        self
    }

    /// The same with a scripted model.
    pub(crate) fn with_script(self, script: &str) -> Self {
        let path = self.directory.path().join("script.toml");
        std::fs::write(&path, script).unwrap();
        let path = path.display().to_string();
        self.with("PALYRA_MODEL_PROVIDER", "scripted").with("PALYRA_MODEL_SCRIPT", &path)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn state_root(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.workspace().join(name), text).unwrap();
    }

    pub(crate) fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_palyrad");
        let mut command = match self.files {
            None => Command::new(program),
            Some(files) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("ulimit -n {files} && exec \"$0\""), program]);
                shell
            }
        };
        command
            .env_clear()
            .env("HOME", self.directory.path())
            .env("PALYRA_STATE_ROOT", self.state_root())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs the daemon to its end, for starts that must fail; one that starts after all is stopped and reported.
    pub(crate) fn refused(&self) -> Output {
        let mut child = self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > PATIENCE {
                child.kill().unwrap();
                let output = child.wait_with_output().unwrap();
                panic!("the daemon started\n{}", String::from_utf8_lossy(&output.stderr));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap()
    }

    /// Starts a daemon and waits until it is healthy.
    pub(crate) async fn start(&self) -> Daemon {
        let log = self.directory.path().join("palyrad.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let child = self.command().stdout(Stdio::null()).stderr(file).spawn().unwrap();
        let client = Client::new(Endpoint::unix(self.state_root()));
        let mut daemon = Daemon { child, client, state_root: self.state_root(), workspace: self.workspace() };
        let start = Instant::now();
        while daemon.client.health().await.is_err() {
            let ended = daemon.child.try_wait().unwrap();
            let log = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(ended.is_none(), "the daemon ended: {ended:?}\n{}", log());
            assert!(start.elapsed() < PATIENCE, "the daemon is not healthy\n{}", log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        daemon
    }
}

/// A running daemon; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) client: Client,
    pub(crate) state_root: PathBuf,
    workspace: PathBuf,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where HTTP is served.
    pub(crate) fn address(&self) -> String {
        std::fs::read_to_string(self.state_root.join("http.addr")).unwrap().trim().to_owned()
    }

    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.state_root.join("local.token")).unwrap().trim().to_owned()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the daemon to end by itself.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the daemon does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn task(&self, prompt: &str) -> CreateRunParams {
        CreateRunParams {
            attachments: Vec::new(),
            objective: None,
            max_attempts: None,
            binding: None,
            client_tools: Vec::new(),
            history: Vec::new(),
            session_id: None,
            session_key: None,
            prompt: prompt.to_owned(),
            workspace: self.workspace.display().to_string(),
            model: None,
            agent: None,
            mode: None,
            limits: None,
            idempotency_key: None,
        }
    }

    pub(crate) async fn create(&self, prompt: &str) -> RunView {
        self.client.create_run(&self.task(prompt)).await.unwrap()
    }

    /// Every event from a position to the end of the run.
    pub(crate) async fn follow(&self, id: RunId, from_seq: u64) -> Vec<RunStreamEvent> {
        let mut tape = self.client.tape(id, from_seq, Follow::UntilEnd);
        let mut events = Vec::new();
        let reading = async {
            while let Some(event) = tape.next().await.unwrap() {
                events.push(event);
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the run does not end");
        events
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, palyra_client::ClientError>) -> String {
    use palyra_common::ToStableError as _;
    result.unwrap_err().to_stable().code
}
