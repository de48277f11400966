//! Deciding on and executing tool calls.
//!
//! Every call runs in a task of its own with a cancellation token. When it is stopped, or takes too long, it gets a short grace; after that the driver
//! no longer waits, and the outcome says that nobody knows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palyra_common::{
    Digest, ErrorCategory, Label, LimitsUsed, Risk, RunId, StableErrorEnvelope, ToStableError as _, ToolAttestation,
    ToolVerdict,
};
use palyra_tools::{
    Concurrency, EffectId, EffectStore, Invocation, Repeatability, Tool, ToolError, ToolOutput, Workspace,
};
use serde_json::Value;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{EngineOptions, Shared};
use crate::canonical::canonical_json;
use crate::decide::{Proposal, Verdict};
use crate::machine::{CallFacts, CallResult, Decided, Input};
use crate::spec::RunSpec;

/// How long a stopped tool may take to report. Cancellation is felt within 100 ms, so this is less.
const GRACE: Duration = Duration::from_millis(60);
/// Who executes built-in tools.
const EXECUTOR: &str = "builtin";

/// Decides on a proposal. Whatever goes wrong is a denial.
pub(super) async fn decide(
    options: &EngineOptions,
    run: &RunSpec,
    call_id: &str,
    tool: &str,
    arguments: &Value,
) -> Decided {
    let found = match options.registry.get(tool) {
        Ok(found) => found,
        Err(error) => return denied(call_id, &error.to_stable()),
    };
    if let Err(error) = options.registry.validate(tool, arguments) {
        return denied(call_id, &error.to_stable());
    }
    let declaration = found.declaration();
    let resource = found.resource(arguments);
    let proposal = Proposal { run, call_id, tool: declaration, arguments, resource: &resource };
    let verdict = match options.decider.decide(proposal).await {
        Ok(verdict) => verdict,
        Err(error) => Verdict { verdict: ToolVerdict::Deny, reasons: vec![error.to_string()], policies: Vec::new() },
    };
    Decided {
        call_id: call_id.to_owned(),
        verdict: verdict.verdict,
        reasons: verdict.reasons,
        policies: verdict.policies,
        facts: CallFacts {
            concurrency: declaration.concurrency,
            repeatability: declaration.repeatability,
            risk: declaration.risk,
            summary: found.summarise(arguments),
            resource,
        },
    }
}

/// A proposal that names no tool or the wrong arguments. The facts are the cautious ones; nothing runs by them.
fn denied(call_id: &str, error: &StableErrorEnvelope) -> Decided {
    Decided {
        call_id: call_id.to_owned(),
        verdict: ToolVerdict::Deny,
        reasons: vec![error.to_string()],
        policies: vec![format!("engine.{}", error.code)],
        facts: CallFacts {
            concurrency: Concurrency::Exclusive,
            repeatability: Repeatability::NonRepeatable,
            risk: Risk::High,
            summary: String::new(),
            resource: String::new(),
        },
    }
}

/// The calls of one run that are executing.
#[derive(Default)]
pub(super) struct ToolCalls {
    tasks: JoinSet<Input>,
    running: HashMap<Id, Running>,
    /// Effects whose outcome is about to be journaled.
    reported: Vec<EffectId>,
}

struct Running {
    call_id: String,
    tool: String,
    effect_id: EffectId,
    cancel: CancellationToken,
}

impl ToolCalls {
    #[expect(
        clippy::too_many_arguments,
        reason = "exactly the fields of the execute action and the run's own surroundings"
    )]
    pub(super) fn begin(
        &mut self,
        shared: &Arc<Shared>,
        run_id: RunId,
        workspace: &Arc<Workspace>,
        call_id: String,
        effect_id: String,
        tool: String,
        arguments: Value,
    ) {
        let cancel = CancellationToken::new();
        let options = &shared.options;
        let execution =
            Execution { call_id: call_id.clone(), tool: tool.clone(), arguments: canonical_json(&arguments) };
        let found = options.registry.get(&tool).cloned();
        let effect_id = EffectId::new(effect_id);
        let running = Running { call_id: call_id.clone(), tool, effect_id: effect_id.clone(), cancel: cancel.clone() };
        let handle = match found {
            Ok(found) => {
                let limit = found.declaration().timeout.min(options.tool_timeout);
                let invocation = Invocation {
                    run_id,
                    call_id,
                    effect_id,
                    arguments,
                    workspace: Arc::clone(workspace),
                    artifacts: Arc::clone(&shared.artifacts),
                    clock: Arc::clone(&options.clock),
                    cancel,
                    limits: options.tool_limits.clone(),
                    effects: Arc::clone(&options.effects),
                };
                self.tasks.spawn(run(found, invocation, execution, limit))
            }
            Err(error) => self.tasks.spawn(async move { execution.over(Err(error), Duration::ZERO, Stop::None) }),
        };
        self.running.insert(handle.id(), running);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The outcomes are durable: what was kept to make their effects happen once is no longer needed.
    pub(super) fn outcomes_are_durable(&mut self, effects: &Arc<EffectStore>) {
        let reported = std::mem::take(&mut self.reported);
        if reported.is_empty() {
            return;
        }
        let effects = Arc::clone(effects);
        // Left-overs of a crash in between are harmless and small.
        tokio::task::spawn_blocking(move || {
            for effect_id in reported {
                if let Err(error) = effects.forget(&effect_id) {
                    tracing::warn!(%effect_id, %error, "the receipt of an effect could not be removed");
                }
            }
        });
    }

    /// Asks one call to stop.
    pub(super) fn stop(&self, call_id: &str) {
        for running in self.running.values().filter(|running| running.call_id == call_id) {
            running.cancel.cancel();
        }
    }

    /// Asks all calls to stop.
    pub(super) fn stop_all(&self) {
        for running in self.running.values() {
            running.cancel.cancel();
        }
    }

    /// The outcome of the next call that ends.
    pub(super) async fn next(&mut self) -> Input {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, finished))) => {
                self.reported.extend(self.running.remove(&id).map(|running| running.effect_id));
                finished
            }
            Some(Err(error)) => {
                let running = self.running.remove(&error.id());
                let (call_id, tool) = running.map(|running| (running.call_id, running.tool)).unwrap_or_default();
                let execution = Execution { call_id, tool, arguments: String::new() };
                execution.over(Err(ToolError::Internal(error.to_string())), Duration::ZERO, Stop::None)
            }
            None => std::future::pending().await,
        }
    }
}

/// Whether a call was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    None,
    Cancelled,
    TimedOut,
}

async fn run(tool: Arc<dyn Tool>, invocation: Invocation, execution: Execution, limit: Duration) -> Input {
    let began = Instant::now();
    let cancel = invocation.cancel.clone();
    let mut call = tool.call(invocation);
    let stop = tokio::select! {
        biased;
        result = &mut call => return execution.over(result, began.elapsed(), Stop::None),
        () = cancel.cancelled() => Stop::Cancelled,
        () = tokio::time::sleep(limit) => Stop::TimedOut,
    };
    cancel.cancel();
    match tokio::time::timeout(GRACE, &mut call).await {
        Ok(result) => execution.over(result, began.elapsed(), stop),
        Err(_) => execution.unknown(began.elapsed(), stop),
    }
}

/// What the outcome of a call is made from.
struct Execution {
    call_id: String,
    tool: String,
    arguments: String,
}

impl Execution {
    fn over(self, result: Result<ToolOutput, ToolError>, took: Duration, stop: Stop) -> Input {
        match result {
            Ok(output) => {
                let result = CallResult {
                    attestation: self.attest(&output.content, took, stop),
                    content: output.content,
                    error: None,
                    label: output.label,
                    truncated: output.truncated,
                    artifact: output.artifact.map(|artifact| artifact.digest),
                    changes: output.changes,
                    duration_ms: millis(took),
                };
                self.finish(result)
            }
            Err(error) if stop == Stop::TimedOut => {
                let message = format!("`{}` did not end within its time limit", self.tool);
                let _ = error;
                self.failed(StableErrorEnvelope::new("tool_timeout", ErrorCategory::Dependency, message), took, stop)
            }
            Err(error) => self.failed(error.to_stable(), took, stop),
        }
    }

    /// The call was told to stop and did not report in time.
    fn unknown(self, took: Duration, stop: Stop) -> Input {
        let message = format!("`{}` was stopped before it reported; its outcome is unknown", self.tool);
        self.failed(StableErrorEnvelope::new("tool_outcome_unknown", ErrorCategory::Dependency, message), took, stop)
    }

    fn failed(self, error: StableErrorEnvelope, took: Duration, stop: Stop) -> Input {
        let content = format!("error: {error}");
        let result = CallResult {
            attestation: self.attest(&content, took, stop),
            content,
            error: Some(error),
            label: Label::system(),
            truncated: false,
            artifact: None,
            changes: Vec::new(),
            duration_ms: millis(took),
        };
        self.finish(result)
    }

    fn attest(&self, content: &str, took: Duration, stop: Stop) -> ToolAttestation {
        ToolAttestation {
            call_id: self.call_id.clone(),
            execution_sha256: Digest::of_parts(&[self.tool.as_bytes(), self.arguments.as_bytes(), content.as_bytes()]),
            executor: EXECUTOR.to_owned(),
            tier: None,
            limits_used: LimitsUsed {
                wall_ms: millis(took),
                output_bytes: Some(content.len() as u64),
                ..LimitsUsed::default()
            },
            timed_out: stop == Stop::TimedOut,
        }
    }

    fn finish(self, result: CallResult) -> Input {
        Input::ToolFinished { call_id: self.call_id, tool: self.tool, result: Box::new(result) }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
