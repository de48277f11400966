//! `palyra.process.run`: a program, from its start to its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use palyra_sandbox::{Child, ExitReport, Stream};
use palyra_tools::{
    Changed, Checkpoint, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput,
};
use serde_json::Value;

use super::Processes;
use super::capture::{Captured, drain, feed};
use super::input::{MAX_SECONDS, ProcessRunInput, shown, shown_cwd};
use super::launch::{Launched, blocking};
use super::outcome::Ended;
use super::readiness::refused;

/// How long output may still come after the process tree is gone. Everything it wrote is in the pipes by then.
const DRAIN: Duration = Duration::from_millis(500);

/// How long a cancelled call may still look for changes; the engine waits for 60 ms.
const HURRY: Duration = Duration::from_millis(35);

/// The tool.
pub(super) struct ProcessRun {
    declaration: ToolDeclaration,
    processes: Arc<Processes>,
}

impl ProcessRun {
    pub(super) fn new(processes: Arc<Processes>) -> Self {
        Self { declaration: Self::declared(), processes }
    }

    /// What the tool says about itself.
    pub(super) fn declared() -> ToolDeclaration {
        let name = ToolName::builtin("palyra.process.run");
        let mut declaration = ToolDeclaration::of::<ProcessRunInput>(name, "Run program", "run `{argv}`")
            .sink("argv", SinkKind::Command)
            .sink("env", SinkKind::Command)
            .sink("stdin", SinkKind::Content)
            .output(Integrity::ToolTrusted, Confidentiality::Private)
            .offered(Offering::Always);
        declaration.timeout = Duration::from_secs(MAX_SECONDS + 5);
        declaration
    }
}

#[async_trait]
impl Tool for ProcessRun {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value) -> String {
        format!("process:{}:{}", shown_cwd(arguments), shown(arguments))
    }

    fn summarise(&self, arguments: &Value) -> String {
        format!("run `{}` in `{}`", shown(arguments), shown_cwd(arguments))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let tool = self.declaration.name.as_str();
        let input: ProcessRunInput = serde_json::from_value(invocation.arguments.clone())
            .map_err(|error| ToolError::argument(tool, "arguments", "invalid", error.to_string()))?;
        let wanted = input.wanted(tool, invocation.time_limit)?;
        let stdin = if input.stdin.is_some() { Stream::Pipe } else { Stream::Null };
        let Launched { command, tier, mut child, checkpoint, proxies } =
            self.processes.launch(&invocation, wanted, stdin).await?;
        let (stdout, stderr, report) = follow(&mut child, input.stdin, &invocation).await?;
        drop(proxies);
        let (cost, left_out) = (checkpoint.cost(), checkpoint.left_out());
        let changed = changes(checkpoint, &invocation).await?;
        let ended = Ended { command, tier, report, stdout, stderr, changed, checkpoint: cost, left_out };
        let processes = Arc::clone(&self.processes);
        let (inline, artifacts) = (invocation.limits.inline_bytes, Arc::clone(&invocation.artifacts));
        blocking(move || ended.into_output(&processes.options, inline, artifacts.as_ref())).await
    }
}

/// What the process changed. A call that was cancelled has to return at once, so in a large workspace it may not come to know.
async fn changes(checkpoint: Checkpoint, invocation: &Invocation) -> Result<Changed, ToolError> {
    let (workspace, artifacts) = (Arc::clone(&invocation.workspace), Arc::clone(&invocation.artifacts));
    let compared = blocking(move || checkpoint.changes(&workspace, artifacts.as_ref()));
    if !invocation.cancel.is_cancelled() {
        return compared.await;
    }
    tokio::time::timeout(HURRY, compared).await.unwrap_or_else(|_| {
        let not_covered = vec!["the call was stopped, and there was no time to compare the files".to_owned()];
        Ok(Changed { not_covered, ..Changed::default() })
    })
}

/// Reads what the process prints until its whole tree is gone; a cancelled call kills it.
async fn follow(
    child: &mut Child,
    stdin: Option<String>,
    invocation: &Invocation,
) -> Result<(Captured, Captured, ExitReport), ToolError> {
    let streams: [Arc<Mutex<Captured>>; 2] = Default::default();
    let mut readers = tokio::task::JoinSet::new();
    let fds = [child.stdout.take().or_else(|| child.terminal.take()), child.stderr.take()];
    for (fd, stream) in fds.into_iter().zip(&streams) {
        if let Some(fd) = fd {
            let (stream, progress) = (Arc::clone(stream), invocation.progress.clone());
            readers.spawn(async move { drain(fd, progress, |bytes| lock(&stream).push(bytes)).await });
        }
    }
    let mut feeding = tokio::task::JoinSet::new();
    if let (Some(pipe), Some(text)) = (child.stdin.take(), stdin) {
        feeding.spawn(feed(pipe, text.into_bytes()));
    }
    let cancel = invocation.cancel.clone();
    let mut told = false;
    let report = loop {
        tokio::select! {
            report = child.wait() => break report.map_err(|error| refused(&error))?,
            () = cancel.cancelled(), if !told => {
                told = true;
                child.kill();
            }
        }
    };
    // All writers are dead, so the pipes end; the limit is for a host that lies.
    let drained = async { while readers.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("the output of a process did not end with it");
    }
    readers.abort_all();
    let [stdout, stderr] = streams.map(|stream| std::mem::take(&mut *lock(&stream)));
    Ok((stdout, stderr, report))
}

fn lock(stream: &Mutex<Captured>) -> std::sync::MutexGuard<'_, Captured> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
