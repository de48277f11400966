//! What is told about a process that ended: how, with what output, and what it did to the workspace.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use palyra_common::{ChangeAttribution, Confidentiality, Integrity, Label, SandboxTier};
use palyra_sandbox::{EndCause, Exit, ExitReport};
use palyra_tools::{
    ArtifactRef, Artifacts, Changed, CheckpointCost, EntryKind, ExecutionFacts, ToolError, ToolOutput, later_executed,
};
use serde_json::{Value, json};

use super::capture::{Captured, Cut};
use super::confinement::Confinement;
use super::denials::may_be_denied;
use super::options::ProcessOptions;

/// Most lines about changed files that a model reads.
const LISTED: usize = 50;

/// A checkpoint that took this long is told about.
const WORTH_TELLING: Duration = Duration::from_millis(250);
/// So is one that copied this much.
const MANY_BYTES: u64 = 4 << 20;

/// Everything that is known about a process at its end.
pub(super) struct Ended {
    pub(super) command: String,
    pub(super) confinement: Confinement,
    pub(super) report: ExitReport,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) changed: Changed,
    pub(super) checkpoint: CheckpointCost,
    pub(super) uncounted: usize,
}

impl Ended {
    /// The result of the call.
    pub(super) fn into_output(
        self,
        options: &ProcessOptions,
        inline_bytes: usize,
        artifacts: &dyn Artifacts,
    ) -> Result<ToolOutput, ToolError> {
        let mut content = format!("{}\n", self.how());
        let budget = options.output_bytes.min(inline_bytes) / 2;
        let mut truncated = Cut::No;
        let mut printed = Vec::new();
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if stream.total == 0 {
                continue;
            }
            let (text, cut) = stream.excerpt(budget);
            if cut == Cut::Yes {
                truncated = Cut::Yes;
            }
            let end = if text.ends_with('\n') { "" } else { "\n" };
            let _ = write!(content, "--- {name} ({} bytes)\n{text}{end}", stream.total);
            printed.push(text);
        }
        let printed: Vec<_> = printed.iter().map(String::as_str).collect();
        if self.failure().is_some() && may_be_denied(self.report.exit, &printed) {
            self.describe_confinement(options, &mut content);
        }
        self.confinement.tell_sockets(&mut content);
        self.tell_changes(&mut content);
        self.tell_cost(&mut content);
        let artifact = if truncated == Cut::Yes { Some(self.keep(artifacts)?) } else { None };
        if let Some(kept) = &artifact {
            let _ =
                writeln!(content, "[the whole output is artifact {}; read on with palyra.artifact.read]", kept.digest);
        }
        let data = self.data();
        Ok(ToolOutput {
            content,
            data: Some(data),
            label: label(options),
            failure: self.failure(),
            broke_off: false,
            execution: Some(ExecutionFacts {
                executor: "sandbox".to_owned(),
                tier: Some(self.confinement.tier),
                fallback_reasons: self.confinement.fallback_reasons().to_vec(),
                cpu_ms: Some(millis(self.report.usage.cpu)),
                memory_bytes: Some(self.report.usage.memory_bytes),
                output_bytes: Some(self.stdout.total + self.stderr.total),
                timed_out: self.report.cause == EndCause::WallClock,
            }),
            changes: self.changed.changes,
            artifact,
            truncated: truncated == Cut::Yes,
        })
    }

    /// How it failed, if it did: by what its exit says, which is all that is known about a program.
    fn failure(&self) -> Option<String> {
        match self.report.exit {
            Exit::Code(0) => None,
            Exit::Code(code) => Some(format!("exit code {code}")),
            Exit::Signal(signal) => Some(format!("ended by signal {signal}")),
        }
    }

    fn how(&self) -> String {
        let seconds = self.report.usage.wall.as_secs_f64();
        let ended = match self.report.exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("ended by signal {signal}"),
        };
        let why = match self.report.cause {
            EndCause::Finished => String::new(),
            EndCause::WallClock => ": its time was over".to_owned(),
            EndCause::Cpu => ": it used up its processor time".to_owned(),
            EndCause::Memory => ": it needed more memory than it may have".to_owned(),
            EndCause::Processes => ": it started more processes than it may".to_owned(),
            EndCause::Disk => ": it wrote more than it may".to_owned(),
            EndCause::Killed => ": it was stopped".to_owned(),
            EndCause::Abandoned => ": the sandbox went away".to_owned(),
        };
        format!("`{}`: {ended} after {seconds:.1} s{why}{}", self.command, self.confinement.fallback())
    }

    /// What the program could not reach, where it may have failed for that: many programs say only "could not resolve host".
    fn describe_confinement(&self, options: &ProcessOptions, content: &mut String) {
        let network = match options.network.as_slice() {
            [] => "no network",
            _ if self.confinement.tier != SandboxTier::C => "no network",
            _ => "only the granted hosts",
        };
        let tier = self.confinement.tier;
        // Tier B sees the host's `/tmp` and may not write there.
        let writable = if tier == SandboxTier::C { "a private /tmp" } else { "a private $TMPDIR" };
        let _ =
            writeln!(content, "--- sandbox (tier {tier}): {network}; only the workspace and {writable} are writable");
    }

    fn tell_changes(&self, content: &mut String) {
        // What git keeps for itself and what ignore files exclude is there to be undone, not to be read.
        let (changes, quiet): (Vec<_>, Vec<_>) = self.changed.changes.iter().partition(|change| {
            let is_gits = Path::new(&change.path).iter().any(|name| name == ".git");
            let is_quiet = is_gits || self.changed.excluded.contains(&change.path);
            !is_quiet || later_executed(Path::new(&change.path)).is_some()
        });
        if !changes.is_empty() {
            let _ = writeln!(content, "--- files ({} changed)", changes.len());
        }
        for change in changes.iter().take(LISTED) {
            let verb = match (&change.before, &change.after) {
                (None, _) if change.entry.after == EntryKind::Tree => "created directory",
                (None, _) => "created",
                (_, None) => "deleted",
                _ => "changed",
            };
            let note = match later_executed(Path::new(&change.path)) {
                Some(reason) if change.after.is_some() => format!(" (note: {})", reason.effect()),
                _ => String::new(),
            };
            let shared = match change.attribution {
                ChangeAttribution::Written | ChangeAttribution::Observed => "",
                ChangeAttribution::Contested => " (also changed by someone else, so it cannot be undone)",
            };
            let _ = writeln!(content, "{verb} {}{note}{shared}", change.path);
        }
        if changes.len() > LISTED {
            let _ = writeln!(content, "… and {} more", changes.len() - LISTED);
        }
        if !quiet.is_empty() {
            let _ = writeln!(content, "--- and {} in `.git` or ignored by it", quiet.len());
        }
        for line in self.changed.not_covered.iter().take(LISTED) {
            let _ = writeln!(content, "cannot be undone: {line}");
        }
    }

    /// What it took to be able to undo, where somebody could wonder why they waited or what is missing.
    fn tell_cost(&self, content: &mut String) {
        let cost = self.checkpoint;
        if cost.took >= WORTH_TELLING || cost.copied_bytes >= MANY_BYTES {
            let _ = writeln!(
                content,
                "--- for undo, {} files ({} bytes) were copied before in {} ms",
                cost.copied,
                cost.copied_bytes,
                cost.took.as_millis()
            );
        }
        if self.uncounted > 0 {
            let _ = writeln!(content, "cannot be undone: changes to {} files that are too many", self.uncounted);
        }
    }

    /// Both streams in one artifact.
    fn keep(&self, artifacts: &dyn Artifacts) -> Result<ArtifactRef, ToolError> {
        let mut bytes = self.stdout.whole();
        if self.stderr.total > 0 {
            bytes.extend_from_slice(b"\n--- stderr\n");
            bytes.extend(self.stderr.whole());
        }
        let digest = artifacts.put(&bytes)?;
        Ok(ArtifactRef { digest, bytes: bytes.len() as u64, media_type: "text/plain; charset=utf-8".to_owned() })
    }

    fn data(&self) -> Value {
        let (code, signal) = match self.report.exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        json!({
            "exit_code": code,
            "signal": signal,
            "cause": self.report.cause,
            "wall_ms": millis(self.report.usage.wall),
            "cpu_ms": millis(self.report.usage.cpu),
            "memory_bytes": self.report.usage.memory_bytes,
            "stdout_bytes": self.stdout.total,
            "stderr_bytes": self.stderr.total,
            "tier": self.confinement.tier,
            "confinement": self.confinement.data(),
            "checkpoint": {
                "files": self.checkpoint.files,
                "copied": self.checkpoint.copied,
                "copied_bytes": self.checkpoint.copied_bytes,
                "ms": millis(self.checkpoint.took),
                "uncounted": self.uncounted,
            },
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How far the output may be trusted. A process without network can only have read what is on this machine and in the workspace, like the file tools;
/// what came over the network could have been written by anybody.
pub(super) fn label(options: &ProcessOptions) -> Label {
    let integrity = if options.network.is_empty() { Integrity::ToolTrusted } else { Integrity::Untrusted };
    Label::new(integrity, Confidentiality::Private).from_source("process")
}
