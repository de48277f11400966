//! A real daemon process on a state root of its own.
//!
//! INVARIANT: whatever a test does, its daemon is gone when the [`TestDaemon`] is dropped: it runs in a process group of its
//! own and that group, and nothing else, is killed. The environment is cleared, so nothing of the developer's own installation
//! leaks in.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use palyra_client::{Client, Endpoint};
use palyra_common::env_vars;
use palyra_journal::VerifyOptions;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use crate::Binary;
use crate::replay::assert_all_runs_replay;
use crate::strace::{Kill, SyscallFault, Traced, calls_about};

/// How long a daemon may take to answer or to go. Generous: machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(4);
/// How much of a log is shown when something fails, and of how many starts.
const SHOWN_LOG: usize = 6000;
const SHOWN_STARTS: u32 = 8;

/// Which model the daemon plans with.
#[derive(Debug, Clone)]
pub enum Model {
    /// The built-in planner.
    Offline,
    /// Fixed turns; see the format in `palyra-models`.
    Scripted(Value),
    /// A server that speaks OpenAI's chat completions.
    Server(String),
}

/// How a test daemon is started.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    binary: Binary,
    model: Model,
    state_root: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    kill: Option<Kill>,
    fault: Option<SyscallFault>,
    disk: Option<Disk>,
}

/// A file system of its own.
#[derive(Debug, Clone)]
struct Disk {
    bytes: u64,
    /// A state that is copied there, after which the rest is filled.
    filled_beside: Option<PathBuf>,
}

impl DaemonOptions {
    /// The real daemon with this model.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self {
            binary: Binary::Palyrad,
            model,
            state_root: None,
            environment: Vec::new(),
            kill: None,
            fault: None,
            disk: None,
        }
    }

    /// Another program instead of `palyrad`.
    #[must_use]
    pub fn binary(mut self, binary: Binary) -> Self {
        self.binary = binary;
        self
    }

    /// A state that is already there, instead of an empty one.
    #[must_use]
    pub fn state_root(mut self, root: &Path) -> Self {
        self.state_root = Some(root.to_owned());
        self
    }

    /// One more environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts the daemon so that it dies at a chosen system call. Holds for the first start only.
    #[must_use]
    pub fn killed_at(mut self, kill: Kill) -> Self {
        self.kill = Some(kill);
        self
    }

    /// Starts the daemon so that system calls of it fail. Holds for the first start only.
    #[must_use]
    pub fn failing_at(mut self, fault: SyscallFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Puts the state root on a file system of this many bytes, which only the daemon sees and which ends with it.
    #[must_use]
    pub fn on_a_disk_of(mut self, bytes: u64) -> Self {
        self.disk = Some(Disk { bytes, filled_beside: None });
        self
    }

    /// As [`DaemonOptions::on_a_disk_of`], with a copy of a state that is already there, and a file `filler` that takes all the room that is left.
    #[must_use]
    pub fn on_a_full_disk_of(mut self, bytes: u64, state: &Path) -> Self {
        self.disk = Some(Disk { bytes, filled_beside: Some(state.to_owned()) });
        self
    }

    /// Starts the daemon and waits until it is healthy.
    ///
    /// # Errors
    /// When it does not come up; the error has its log.
    pub async fn start(self) -> Result<TestDaemon> {
        let mut daemon = self.spawn()?;
        daemon.wait_healthy().await?;
        Ok(daemon)
    }

    /// Starts the daemon without waiting.
    ///
    /// # Errors
    /// When the program is missing or cannot be started.
    pub fn spawn(self) -> Result<TestDaemon> {
        let home = TempDir::with_prefix("palyra-test-")?;
        let state_root = self.state_root.clone().unwrap_or_else(|| home.path().join("state"));
        let mut daemon = TestDaemon { options: self, home, state_root, child: None, starts: 0 };
        daemon.spawn()?;
        Ok(daemon)
    }
}

/// How a daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}

/// A daemon under test.
#[derive(Debug)]
pub struct TestDaemon {
    options: DaemonOptions,
    home: TempDir,
    state_root: PathBuf,
    child: Option<Child>,
    starts: u32,
}

impl TestDaemon {
    /// The daemon's state root.
    #[must_use]
    pub fn state_root(&self) -> &Path {
        &self.state_root
    }

    /// The state root as the test sees it: a daemon on a disk of its own is reached through its process.
    #[must_use]
    pub fn seen_root(&self) -> PathBuf {
        match (&self.options.disk, self.pid()) {
            (Some(_), Some(pid)) => {
                let inside = self.state_root.strip_prefix("/").unwrap_or(&self.state_root);
                Path::new("/proc").join(pid.to_string()).join("root").join(inside)
            }
            _ => self.state_root.clone(),
        }
    }

    /// A client of the daemon. Nothing is sent yet.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(Endpoint::unix(self.seen_root()))
    }

    /// The process that was started: the daemon, or what traces it.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// How the process ended, if it has.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn exited(&mut self) -> Result<Option<Exit>> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?.map(Exit::from)),
            None => Ok(None),
        }
    }

    /// Waits until the daemon answers.
    ///
    /// # Errors
    /// When it ends or stays silent; the error has its log.
    pub async fn wait_healthy(&mut self) -> Result<()> {
        let began = Instant::now();
        loop {
            if self.client().health().await.is_ok() {
                return Ok(());
            }
            if let Some(exit) = self.exited()? {
                bail!("the daemon ended with {exit:?} before it was healthy\n{}", self.log());
            }
            ensure!(began.elapsed() < PATIENCE, "the daemon is not healthy after {PATIENCE:?}\n{}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Kills the daemon as a power cut would.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn kill9(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take()
            && child.try_wait()?.is_none()
        {
            kill_group(&child, Signal::KILL);
            child.wait()?;
        }
        Ok(())
    }

    /// Sends a signal to the daemon.
    ///
    /// # Errors
    /// When it is not running.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_group(self.child.as_ref().context("the daemon is not running")?, signal);
        Ok(())
    }

    /// Asks the daemon to stop in good order and waits for it.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop(&mut self) -> Result<Exit> {
        self.signal(Signal::TERM)?;
        self.wait_exit().await
    }

    /// Waits until the daemon ends.
    ///
    /// # Errors
    /// When it does not.
    pub async fn wait_exit(&mut self) -> Result<Exit> {
        let began = Instant::now();
        loop {
            if let Some(exit) = self.exited()? {
                self.child = None;
                return Ok(exit);
            }
            ensure!(began.elapsed() < PATIENCE, "the daemon is still there after {PATIENCE:?}\n{}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Starts the daemon again on the same state, plainly, after it ended in whatever way.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn restart(&mut self) -> Result<()> {
        self.respawn(None)?;
        self.wait_healthy().await
    }

    /// Starts the daemon again on the same state without waiting, to die at another system call if one is given.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn respawn(&mut self, kill: Option<Kill>) -> Result<()> {
        self.kill9()?;
        self.options.kill = kill;
        self.options.fault = None;
        self.spawn()
    }

    /// Ends a test: every run replays to the last byte, the daemon stops in good order and its journal verifies.
    ///
    /// # Errors
    /// When any of that is not so.
    pub async fn finish(mut self) -> Result<()> {
        assert_all_runs_replay(&self.client()).await.with_context(|| self.log())?;
        let exit = self.stop().await?;
        ensure!(exit == Exit::Code(0), "the daemon ended with {exit:?}\n{}", self.log());
        self.verify_journal()
    }

    /// Checks the journal on disk, with everything that is derived from it.
    ///
    /// # Errors
    /// When it has a problem.
    pub fn verify_journal(&self) -> Result<()> {
        let options = VerifyOptions { projections: palyra_agent::projections(), ..VerifyOptions::default() };
        let report = palyra_journal::verify(&self.state_root, options)?;
        ensure!(report.problems.is_empty(), "the journal does not verify: {:?}", report.problems);
        Ok(())
    }

    /// The end of what the last starts of this daemon wrote to standard error.
    #[must_use]
    pub fn log(&self) -> String {
        let mut shown = String::new();
        for start in self.starts.saturating_sub(SHOWN_STARTS) + 1..=self.starts {
            let text = fs::read_to_string(self.log_file(start)).unwrap_or_default();
            let tail = text.char_indices().rev().nth(SHOWN_LOG).map_or(0, |(at, _)| at);
            shown += &format!("--- log of start {start}\n{}", text.get(tail..).unwrap_or_default());
        }
        shown
    }

    /// The file that the present start of the daemon logs to.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.log_file(self.starts)
    }

    /// What became of the calls that were told to fail.
    #[must_use]
    pub fn traced(&self) -> Traced {
        Traced::read(&self.trace_file())
    }

    /// The names of the traced calls that were about these files of the state root, or anything below them.
    #[must_use]
    pub fn traced_calls(&self, files: &[&str]) -> BTreeSet<String> {
        let files: Vec<PathBuf> = files.iter().map(|file| self.state_root.join(file)).collect();
        calls_about(&self.trace_file(), &files)
    }

    fn trace_file(&self) -> PathBuf {
        self.home.path().join("trace")
    }

    fn log_file(&self, start: u32) -> PathBuf {
        self.home.path().join(format!("log-{start}"))
    }

    fn spawn(&mut self) -> Result<()> {
        self.starts += 1;
        let program = self.options.binary.path()?;
        let mut command = match (&self.options.kill, &self.options.fault, &self.options.disk) {
            (Some(kill), _, _) => kill.command(&self.state_root, &program),
            (None, Some(fault), _) => fault.command(&self.state_root, &program, &self.trace_file()),
            (None, None, Some(disk)) => on_small_disk(&self.state_root, disk, &program)?,
            (None, None, None) => Command::new(program),
        };
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env(env_vars::HOME, self.home.path()).env(env_vars::PALYRA_STATE_ROOT, &self.state_root);
        command.env("PALYRA_DAEMON_HTTP_BIND", "127.0.0.1:0").env("PALYRA_GRPC_BIND", "127.0.0.1:0");
        command.env("PALYRA_QUIC_ENABLED", "false");
        match &self.options.model {
            Model::Offline => {
                command.env("PALYRA_MODEL_PROVIDER", "offline");
            }
            Model::Scripted(script) => {
                let path = self.home.path().join("script.json");
                fs::write(&path, script.to_string())?;
                command.env("PALYRA_MODEL_PROVIDER", "scripted").env("PALYRA_MODEL_SCRIPT", path);
            }
            Model::Server(base_url) => {
                command.env(env_vars::OPENAI_BASE_URL, base_url).env(env_vars::OPENAI_API_KEY, "test-key");
            }
        }
        command.envs(self.options.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(self.log_file(self.starts))?);
        let child = command.process_group(0).spawn();
        self.child = Some(child.with_context(|| format!("starting {}", self.options.binary.name()))?);
        Ok(())
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        let _ = self.kill9();
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

/// Mounts a file system in a namespace of the daemon's own, which an ordinary user may do as well.
fn on_small_disk(state_root: &Path, disk: &Disk, program: &Path) -> Result<Command> {
    fs::create_dir_all(state_root)?;
    let script = r#"mount -t tmpfs -o "size=$1,mode=700" palyra-test "$2" || exit
        if [ -n "$4" ]; then
            cp -a --sparse=never "$4/." "$2/" || exit
            head -c "$1" /dev/zero > "$2/filler" 2> /dev/null
        fi
        exec "$3""#;
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(disk.bytes.to_string()).arg(state_root).arg(program);
    command.arg(disk.filled_beside.clone().unwrap_or_default());
    Ok(command)
}

/// Signals the group that the child leads. Not for a child that was waited for: its number may be another's by now.
fn kill_group(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}
