//! The process of a server: started with almost nothing, alone in its group, gone when its owner is gone.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use palyra_common::Environment;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::tail::Tail;
use crate::{McpError, ServerName, StdioConfig};

/// How long a server may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_millis(1500);

/// A running server. Dropping it kills its whole process group.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    group: Group,
    kill: CancellationToken,
    ended: watch::Receiver<Option<String>>,
    stderr: Tail,
    tasks: Vec<JoinHandle<()>>,
}

/// The process group of a server, by the id of its first process.
#[derive(Debug, Clone)]
struct Group {
    leader: Option<Pid>,
    /// Set once the first process has been waited for: from then on its number may belong to somebody else.
    reaped: Arc<AtomicBool>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader
            && !self.reaped.load(Ordering::Acquire)
        {
            // It may have ended by itself just now, which is as good.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl ServerProcess {
    /// Starts the server. It sees the environment variables that its entry names and no others.
    pub(crate) fn start(
        server: &ServerName,
        config: &StdioConfig,
        environment: &Environment,
    ) -> Result<(Self, ChildStdin, ChildStdout), McpError> {
        let failed =
            |source| McpError::StartFailed { server: server.to_string(), command: config.command.clone(), source };
        let variables = config.env.iter().filter_map(|name| environment.get(name).map(|value| (name, value)));
        let mut command = Command::new(&config.command);
        command
            .args(&config.args)
            .env_clear()
            .envs(variables.clone())
            .current_dir(config.cwd.as_deref().unwrap_or(Path::new("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        palyra_common::restore_file_limit(command.as_std_mut());
        let mut child = command.spawn().map_err(failed)?;
        let missing = || failed(std::io::Error::other("its standard streams are missing"));
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;

        // Variables that everybody has are no secrets, and would blot out half of what the server says.
        let common = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "SHELL", "TERM", "TMPDIR"];
        let secrets = variables
            .filter(|(name, _)| !common.contains(&name.as_str()))
            .filter_map(|(_, value)| value.to_str().map(str::to_owned));
        let tail = Tail::hiding(secrets);
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = Group { leader, reaped: Arc::default() };
        let kill = CancellationToken::new();
        let (ended_sender, ended) = watch::channel(None);
        let waiter = {
            let (group, kill) = (group.clone(), kill.clone());
            async move {
                let status = tokio::select! {
                    status = child.wait() => status,
                    () = kill.cancelled() => {
                        group.signal(Signal::KILL);
                        child.wait().await
                    }
                };
                // Children that it left behind are in its group still; the number stays theirs while they live.
                if let Some(leader) = group.leader {
                    let _ = kill_process_group(leader, Signal::KILL);
                }
                group.reaped.store(true, Ordering::Release);
                ended_sender.send_replace(Some(status.map_or_else(|error| error.to_string(), described)));
            }
        };
        let tasks = vec![tokio::spawn(waiter), tokio::spawn(tail.clone().follow(stderr))];
        Ok((Self { group, kill, ended, stderr: tail, tasks }, stdin, stdout))
    }

    /// The id of its first process.
    pub(crate) fn id(&self) -> Option<u32> {
        self.group.leader.and_then(|leader| u32::try_from(leader.as_raw_nonzero().get()).ok())
    }

    /// What it wrote to standard error last.
    pub(crate) fn last_words(&self) -> String {
        self.stderr.text()
    }

    /// How it ended, if it has.
    pub(crate) async fn ending(&self, patience: Duration) -> Option<String> {
        let mut ended = self.ended.clone();
        let waited = tokio::time::timeout(patience, ended.wait_for(Option::is_some)).await;
        waited.ok()?.ok().and_then(|ending| ending.clone())
    }

    /// Lets it end by itself, then asks, then kills. Its input has been closed already.
    pub(crate) async fn stop(mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if self.ending(GRACE).await.is_some() {
                break;
            }
            self.group.signal(signal);
        }
        self.kill.cancel();
        for task in std::mem::take(&mut self.tasks) {
            // A grandchild that fled the group may hold the stream open; it is not waited for.
            let _ = tokio::time::timeout(GRACE, task).await;
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // At once and not only by the task: the runtime may be going away.
        self.group.signal(Signal::KILL);
        self.kill.cancel();
    }
}

fn described(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process exited with code {code}"),
        (None, Some(signal)) => format!("its process was killed by signal {signal}"),
        (None, None) => "its process exited".to_owned(),
    }
}
