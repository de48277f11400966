//! One background process: its output so far, and its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::SandboxTier;
use palyra_sandbox::{Child, EndCause, Exit, ExitReport, SandboxError};
use palyra_tools::{Artifacts, Changed, Checkpoint, ToolError, ToolProgress, Workspace};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::idle::IdleMonitor;
use crate::process::capture::{Captured, drain};
use crate::process::network::Served;

/// A background process.
pub(crate) struct Running {
    pub(super) command: String,
    pub(super) tier: SandboxTier,
    streams: [Arc<Mutex<Captured>>; 2],
    state: watch::Receiver<State>,
    stop: CancellationToken,
    /// What the files were before it; taken by whoever first reports the changes after its end.
    checkpoint: Mutex<Option<Checkpoint>>,
}

/// Whether a process lives.
#[derive(Debug, Clone)]
pub(super) enum State {
    Runs,
    Ended(ExitReport),
    /// Nobody knows how; it is gone.
    Lost(String),
}

/// Which stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Out,
    Error,
}

impl Running {
    /// Follows a process that was just started.
    pub(crate) fn follow(
        mut child: Child,
        proxies: Served,
        checkpoint: Checkpoint,
        tier: SandboxTier,
        command: String,
    ) -> Self {
        let streams: [Arc<Mutex<Captured>>; 2] = Default::default();
        for (fd, stream) in [child.stdout.take(), child.stderr.take()].into_iter().zip(&streams) {
            if let Some(fd) = fd {
                let stream = Arc::clone(stream);
                tokio::spawn(
                    async move { drain(fd, ToolProgress::default(), |bytes| lock(&stream).push(bytes)).await },
                );
            }
        }
        let monitor = IdleMonitor::of_sandbox(child.pid, checkpoint.idle_periods());
        let (told, state) = watch::channel(State::Runs);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            let ended = end_of(&mut child, &stopped).await;
            drop(proxies);
            if ended.is_ok() {
                monitor.ended();
            }
            let state = match ended {
                Ok(report) => State::Ended(report),
                Err(error) => State::Lost(error.to_string()),
            };
            let _ = told.send(state);
        });
        Self { command, tier, streams, state, stop, checkpoint: Mutex::new(Some(checkpoint)) }
    }

    pub(super) fn lives(&self) -> bool {
        matches!(*self.state.borrow(), State::Runs)
    }

    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Asks for its end; [`Running::ended`] tells when it is gone.
    pub(super) fn kill(&self) {
        self.stop.cancel();
    }

    pub(super) async fn ended(&self) {
        let mut state = self.state.clone();
        let _ = state.wait_for(|state| !matches!(state, State::Runs)).await;
    }

    pub(super) fn stream(&self, which: Which) -> MutexGuard<'_, Captured> {
        let [out, error] = &self.streams;
        lock(match which {
            Which::Out => out,
            Which::Error => error,
        })
    }

    /// What it did to the workspace, once it has ended; told once. Blocks.
    pub(super) fn changes(
        &self,
        workspace: &Workspace,
        artifacts: &dyn Artifacts,
        stop: &CancellationToken,
    ) -> Result<Option<Changed>, ToolError> {
        if self.lives() {
            return Ok(None);
        }
        let Some(checkpoint) = lock(&self.checkpoint).take() else { return Ok(None) };
        let changed = checkpoint.changes(workspace, artifacts, stop);
        if changed.is_err() {
            // Nobody was told, so the next to ask may be.
            lock(&self.checkpoint).get_or_insert(checkpoint);
        }
        changed.map(Some)
    }

    /// One line about how it is.
    pub(super) fn described(&self) -> String {
        match self.state() {
            State::Runs => format!("`{}` runs", self.command),
            State::Lost(reason) => format!("`{}` is gone: {reason}", self.command),
            State::Ended(report) => {
                let how = match report.exit {
                    Exit::Code(code) => format!("exit code {code}"),
                    Exit::Signal(signal) => format!("signal {signal}"),
                };
                let why =
                    if report.cause == EndCause::Finished { String::new() } else { format!(" ({})", report.cause) };
                format!("`{}` ended: {how}{why} after {:.1} s", self.command, report.usage.wall.as_secs_f64())
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn end_of(child: &mut Child, stop: &CancellationToken) -> Result<ExitReport, SandboxError> {
    tokio::select! {
        report = child.wait() => return report,
        () = stop.cancelled() => {}
    }
    child.kill();
    child.wait().await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
