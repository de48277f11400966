//! Running the real `palyra` command and keeping what came of it.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use palyra_common::env_vars;
use serde_json::Value;
use tempfile::TempDir;

use crate::{Binary, Filters};

/// A home, a state root and a workspace of their own, and commands that see nothing else.
#[derive(Debug)]
pub struct TestContext {
    directory: TempDir,
    environment: Vec<(String, String)>,
}

impl TestContext {
    /// An empty home with an empty workspace, planning offline on a free port.
    ///
    /// # Errors
    /// When the directories cannot be made.
    pub fn new() -> Result<Self> {
        let directory = TempDir::with_prefix("palyra-cli-")?;
        for name in ["home", "workspace"] {
            fs::create_dir(directory.path().join(name))?;
        }
        let environment = vec![
            ("PALYRA_DAEMON_HTTP_BIND".to_owned(), "127.0.0.1:0".to_owned()),
            ("PALYRA_GRPC_BIND".to_owned(), "127.0.0.1:0".to_owned()),
            ("PALYRA_MODEL_PROVIDER".to_owned(), "offline".to_owned()),
            ("PALYRA_QUIC_ENABLED".to_owned(), "false".to_owned()),
        ];
        Ok(Self { directory, environment })
    }

    /// Sets an environment variable for every later command.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// Makes a scripted model answer.
    ///
    /// # Errors
    /// When the script cannot be written.
    pub fn scripted(self, script: &Value) -> Result<Self> {
        let path = self.directory.path().join("script.json");
        fs::write(&path, script.to_string())?;
        Ok(self.env("PALYRA_MODEL_PROVIDER", "scripted").env("PALYRA_MODEL_SCRIPT", path.display()))
    }

    /// The directory that holds everything.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// The workspace, which is also where commands run.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// The state root.
    #[must_use]
    pub fn state_root(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// Puts a file into the workspace.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.workspace().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// A command with this isolation, to be changed further.
    ///
    /// # Errors
    /// When the program was not built.
    pub fn command<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Result<Command> {
        let mut command = Command::new(Binary::Palyra.path()?);
        command.args(arguments).current_dir(self.workspace()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env(env_vars::HOME, self.directory.path().join("home"));
        command.env(env_vars::PALYRA_STATE_ROOT, self.state_root());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// Runs `palyra` with these arguments.
    ///
    /// # Errors
    /// When the program was not built or cannot be started.
    pub fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Result<Run> {
        self.complete(self.command(arguments)?)
    }

    /// Runs `palyra` in another directory than the workspace.
    ///
    /// # Errors
    /// When the program was not built or cannot be started.
    pub fn run_in<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, directory: &Path, arguments: I) -> Result<Run> {
        let mut command = self.command(arguments)?;
        command.current_dir(directory);
        self.complete(command)
    }

    /// Runs `palyra` with these arguments and this text on standard input.
    ///
    /// # Errors
    /// When the program was not built or cannot be started.
    pub fn run_with_input<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I, input: &str) -> Result<Run> {
        let mut file = tempfile::tempfile_in(self.directory.path())?;
        file.write_all(input.as_bytes())?;
        std::io::Seek::rewind(&mut file)?;
        let mut command = self.command(arguments)?;
        command.stdin(file);
        self.complete(command)
    }

    /// Output goes through files, not pipes: a daemon that the command starts may outlive it, and must not keep the test
    /// waiting for the end of a pipe.
    fn complete(&self, mut command: Command) -> Result<Run> {
        let capture = |name: &str| tempfile::Builder::new().prefix(name).tempfile_in(self.directory.path());
        let (stdout, stderr) = (capture("out-")?, capture("err-")?);
        command.stdout(stdout.reopen()?).stderr(stderr.reopen()?);
        let status = command.status().context("starting palyra")?;
        let read = |file: &File| -> Result<String> {
            let bytes = std::io::Read::bytes(file.try_clone()?).collect::<std::io::Result<Vec<u8>>>()?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Run {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            stdout: read(stdout.as_file())?,
            stderr: read(stderr.as_file())?,
        })
    }

    /// Ends a test: every run replays to the last byte, the daemon stops in good order and its journal verifies.
    ///
    /// # Errors
    /// When any of that is not so.
    pub fn finish(self) -> Result<()> {
        let listed = self.run(["runs", "list", "--limit", "1000", "--output", "json"])?;
        let runs = listed.json()?.get("runs").and_then(Value::as_array).cloned().unwrap_or_default();
        ensure!(!runs.is_empty(), "there is no run to replay: {listed}");
        for run in &runs {
            let id = run.get("run_id").and_then(Value::as_str).context("a run has an id")?;
            let replayed = self.run(["runs", "replay", id])?;
            ensure!(replayed.code == 0, "run {id} does not replay: {replayed}");
        }
        for command in [["daemon", "stop"], ["journal", "verify"]] {
            let ended = self.run(command)?;
            ensure!(ended.code == 0, "{command:?}: {ended}");
        }
        Ok(())
    }

    /// The filters that hide what is particular to this context.
    #[must_use]
    pub fn filters(&self) -> Filters {
        Filters::new()
            .path(&self.workspace(), "WORKSPACE")
            .path(&self.state_root(), "STATE")
            .path(&self.directory.path().join("home"), "HOME")
            .path(self.directory.path(), "ROOT")
    }
}

impl Drop for TestContext {
    fn drop(&mut self) {
        // A command may have started a daemon; it must not outlive its state.
        let known = self.environment.iter().find(|(name, _)| name == env_vars::PALYRA_STATE_ROOT);
        let root = known.map_or_else(|| self.state_root(), |(_, root)| PathBuf::from(root));
        if !root.join(palyra_client::SOCKET_NAME).exists() {
            return;
        }
        if let Ok(mut command) = self.command(["daemon", "stop"]) {
            let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its exit code; 128 and more mean a signal.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Run {
    /// The first JSON document on standard output.
    ///
    /// # Errors
    /// When there is none.
    pub fn json(&self) -> Result<Value> {
        let mut documents = serde_json::Deserializer::from_str(&self.stdout).into_iter::<Value>();
        documents.next().context("nothing was printed")?.with_context(|| format!("not JSON: {self}"))
    }

    /// The last JSON document on standard output.
    ///
    /// # Errors
    /// When there is none.
    pub fn last_json(&self) -> Result<Value> {
        let documents = serde_json::Deserializer::from_str(&self.stdout).into_iter::<Value>();
        documents.last().context("nothing was printed")?.with_context(|| format!("not JSON: {self}"))
    }
}

impl Run {
    /// What it did, with everything hidden that differs from time to time.
    #[must_use]
    pub fn snapshot(&self, filters: &Filters) -> String {
        filters.apply(&self.to_string())
    }
}

impl fmt::Display for Run {
    /// The form of snapshots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit: {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}
