//! `palyra.process.run`: a program, from its start to its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use palyra_sandbox::{Child, ExitReport, Stream};
use palyra_tools::{
    CallResource, Containment, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput,
    Workspace,
};
use serde_json::Value;

use super::capture::{Captured, drain, feed};
use super::input::{MAX_SECONDS, ProcessRunInput, parsed, shown, shown_cwd};
use super::launch::Launched;
use super::outcome::Ended;
use super::readiness::refused;
use super::{Processes, grant};
use crate::idle::IdleMonitor;
use crate::tracking::{blocking, changes_since};

/// How long output may still come after the process tree is gone. Everything it wrote is in the pipes by then.
const DRAIN: Duration = Duration::from_millis(500);

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
            // A program does what it reads as well as what it is called with, and where.
            .sink("stdin", SinkKind::Command)
            .sink("cwd", SinkKind::Command)
            .output(Integrity::ToolTrusted, Confidentiality::Private)
            .showing_inline()
            .offered(Offering::Always)
            .reporting_begin();
        declaration.timeout = Duration::from_secs(MAX_SECONDS + 5);
        declaration
    }
}

#[async_trait]
impl Tool for ProcessRun {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool(format!("process:{}:{}", shown_cwd(arguments), shown(arguments))))
    }

    fn summarise(&self, arguments: &Value) -> String {
        format!("run `{}` in `{}`", shown(arguments), shown_cwd(arguments))
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let tool = self.declaration.name.as_str();
        let wanted = parsed::<ProcessRunInput>(tool, arguments)?.wanted(tool, self.declaration.timeout)?;
        grant::check(&self.processes.options, workspace, &wanted)
    }

    async fn containment(&self, _: &Value, workspace: &Arc<Workspace>) -> Containment {
        self.processes.containment(workspace).await
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let tool = self.declaration.name.as_str();
        let input: ProcessRunInput = parsed(tool, &invocation.arguments)?;
        let wanted = input.wanted(tool, invocation.time_limit)?;
        let stdin = if input.stdin.is_some() { Stream::Pipe } else { Stream::Null };
        let Launched { command, confinement, mut child, checkpoint, proxies } =
            self.processes.launch(&invocation, wanted, stdin).await?;
        let monitor = IdleMonitor::of_sandbox(child.pid, checkpoint.idle_periods());
        let (stdout, stderr, report) = follow(&mut child, input.stdin, &invocation).await?;
        monitor.ended();
        drop(proxies);
        let (cost, uncounted) = (checkpoint.cost(), checkpoint.uncounted());
        let changed = changes_since(checkpoint, &invocation).await?;
        let ended = Ended { command, confinement, report, stdout, stderr, changed, checkpoint: cost, uncounted };
        let processes = Arc::clone(&self.processes);
        let (inline, artifacts) = (invocation.limits.inline_bytes, Arc::clone(&invocation.artifacts));
        blocking(move || ended.into_output(&processes.options, inline, artifacts.as_ref())).await
    }
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
