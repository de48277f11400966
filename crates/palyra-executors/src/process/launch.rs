//! From a wanted process to a running one: sandbox ready, plan made, files copied aside, program executed, way out open.

use std::sync::Arc;

use palyra_common::command_line;
use palyra_sandbox::{Child, Stdio, Stream};
use palyra_tools::{Checkpoint, CheckpointLimits, Invocation, ToolError};

use super::confinement::Confinement;
use super::input::Wanted;
use super::network::{Served, WayOut};
use super::readiness::refused;
use super::{Processes, containment, grant};
use crate::tracking::blocking;

/// A process that runs.
pub(super) struct Launched {
    pub(super) command: String,
    pub(super) confinement: Confinement,
    pub(super) child: Child,
    /// What the files were before.
    pub(super) checkpoint: Checkpoint,
    pub(super) proxies: Served,
}

impl Processes {
    /// Starts a process for a call. Until the program was executed, cancelling the call starts nothing.
    pub(super) async fn launch(
        self: &Arc<Self>,
        invocation: &Invocation,
        wanted: Wanted,
        stdin: Stream,
    ) -> Result<Launched, ToolError> {
        let ready = tokio::select! {
            () = invocation.cancel.cancelled() => return Err(ToolError::Cancelled),
            ready = self.readiness.get() => ready?,
        };
        let command = command_line(wanted.argv.iter().map(String::as_str));
        let (plan, way_out, checkpoint) = {
            let (processes, ready) = (Arc::clone(self), Arc::clone(&ready));
            let (workspace, effect) = (Arc::clone(&invocation.workspace), invocation.effect_id.clone());
            let (run, cancel, decided) = (invocation.run_id, invocation.cancel.clone(), invocation.decided_as);
            blocking(move || {
                let way_out = WayOut::prepare(&processes.egress, &processes.options, &effect)?;
                let plan = grant::planned(&processes.options, &ready, &workspace, &effect, &wanted, way_out.as_ref())?;
                let checkpoint = processes.checkpoints.take(&workspace, CheckpointLimits::default(), run, &cancel)?;
                containment::hold_to(decided, &processes.options, &plan, &checkpoint, way_out.is_some())?;
                Ok((plan, way_out, checkpoint))
            })
            .await?
        };
        let stdio = Stdio { stdin, stdout: Stream::Pipe, stderr: Stream::Pipe };
        // Everything before this leaves no trace outside of the daemon's own directories.
        invocation.begin.record().await?;
        let mut child = ready.sandbox.spawn(&plan, stdio).await.map_err(|error| refused(&error))?;
        let confinement = Confinement::of(&plan, &child);
        let fallback = confinement.fallback();
        if !fallback.is_empty() {
            self.fallback_logged
                .call_once(|| tracing::warn!("programs run with less isolation than asked for{fallback}"));
        }
        let proxies = way_out.map(|way| way.serve(&self.egress, &mut child)).transpose()?.unwrap_or_default();
        Ok(Launched { command, confinement, child, checkpoint, proxies })
    }
}
