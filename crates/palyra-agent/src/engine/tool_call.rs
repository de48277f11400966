//! Executing tool calls.
//!
//! Every call runs in a task of its own with a cancellation token. When it is stopped, or takes too long, it gets a short grace; after that the driver
//! no longer waits, and the outcome says that nobody knows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palyra_common::{
    DataOrigin, Digest, ErrorCategory, Integrity, Label, LimitsUsed, OutputClass, StableErrorEnvelope,
    ToStableError as _, ToolAttestation,
};
use palyra_tools::{
    BeginReport, Begun, DEFAULT_TIMEOUT, EffectId, EffectStore, ExecutionFacts, Invocation, Tool, ToolError,
    ToolOutput, Workspace,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::Shared;
use super::artifacts::RunArtifacts;
use super::canvases::{Drawing, Drawn};
use super::file_labels::revealable;
use super::flow::registry_with;
use super::inspect_call::{self, Inspected};
use super::model_call::CONTENT;
use super::progress::ProgressBoard;
use super::safety::Safety;
use super::tool_search::{self, FoundTools};
use crate::canonical::canonical_json;
use crate::machine::{CallResult, Input, Machine, Showing};
use crate::own_tools::{INSPECT, SEARCH};

/// How long a stopped tool may take to report. Cancellation is felt within 100 ms, so this is less.
const GRACE: Duration = Duration::from_millis(60);
/// Who executes built-in tools.
const EXECUTOR: &str = "builtin";

/// The calls of one run that are executing.
pub(super) struct ToolCalls {
    /// How they get on.
    progress: Arc<ProgressBoard>,
    tasks: JoinSet<Input>,
    running: HashMap<Id, Running>,
    /// Effects whose outcome is about to be journaled.
    reported: Vec<EffectId>,
    /// Calls whose effect is about to begin, and where they report it.
    beginning: (mpsc::UnboundedSender<Begun>, mpsc::UnboundedReceiver<Begun>),
}

/// What happened to a call.
pub(super) enum ToolNews {
    /// It is over.
    Finished(Box<Input>),
    /// Its effect begins as soon as that is durable.
    Begun(Begun),
}

struct Running {
    call_id: String,
    tool: String,
    effect_id: EffectId,
    cancel: CancellationToken,
}

impl ToolCalls {
    /// None yet; how they get on is told there.
    pub(super) fn new(progress: Arc<ProgressBoard>) -> Self {
        let beginning = mpsc::unbounded_channel();
        Self { progress, tasks: JoinSet::new(), running: HashMap::new(), reported: Vec::new(), beginning }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "exactly the fields of the execute action and the run's own surroundings"
    )]
    pub(super) fn begin(
        &mut self,
        shared: &Arc<Shared>,
        machine: &Machine,
        workspace: &Arc<Workspace>,
        call_id: String,
        effect_id: String,
        tool: String,
        arguments: Value,
    ) {
        let cancel = CancellationToken::new();
        let (spec, given) = (machine.spec(), machine.given_to(&call_id));
        // What a program makes of a text that the planner has not seen is no more to be shown than that.
        let is_given_variables =
            given.integrity == Integrity::Untrusted && machine.seen().integrity < Integrity::Untrusted;
        let options = &shared.options;
        let execution =
            Execution::new(call_id.clone(), tool.clone(), canonical_json(&arguments)).scanned(&options.safety);
        let effect_id = EffectId::new(effect_id);
        let span = tool_span(&tool, &call_id);
        span.in_scope(|| tracing::trace!(target: CONTENT, arguments = execution.arguments));
        let running = Running {
            call_id: call_id.clone(),
            tool: tool.clone(),
            effect_id: effect_id.clone(),
            cancel: cancel.clone(),
        };
        let invocation = Invocation {
            progress: self.progress.open(&call_id),
            begin: BeginReport::of(&call_id, self.beginning.0.clone()),
            decided_as: machine.decided_as(&call_id),
            run_id: spec.run_id,
            call_id,
            effect_id,
            arguments,
            workspace: Arc::clone(workspace),
            artifacts: Arc::new(RunArtifacts::of(shared, spec)),
            clock: Arc::clone(&options.clock),
            cancel,
            time_limit: options.tool_timeout,
            limits: options.tool_limits.clone(),
            effects: Arc::clone(&options.effects),
        };
        let shared = Arc::clone(shared);
        let calling = async move {
            // A call that was permitted before a restart may need a server that is not connected yet.
            let registry = tokio::select! {
                biased;
                () = invocation.cancel.cancelled() => return execution.over(Err(ToolError::Cancelled), Duration::ZERO, Stop::Cancelled),
                registry = registry_with(&shared.options, &tool) => registry,
            };
            match registry.get(&tool) {
                Ok(found) => {
                    let limit = time_limit(found.declaration().timeout, shared.options.tool_timeout);
                    let invocation = Invocation { time_limit: limit, ..invocation };
                    let execution =
                        if is_given_variables { execution.of(found).by_mode() } else { execution.of(found) };
                    match revealed_by(&shared, found, given, &invocation.workspace).await {
                        Ok(revealed) => run(Arc::clone(found), invocation, execution.revealing(revealed), limit).await,
                        Err(error) => execution.over(Err(error), Duration::ZERO, Stop::None),
                    }
                }
                Err(error) => execution.over(Err(error), Duration::ZERO, Stop::None),
            }
        };
        let handle = self.tasks.spawn(calling.instrument(span));
        self.running.insert(handle.id(), running);
    }

    /// Looks into a variable of the run.
    pub(super) fn inspect(&mut self, shared: &Arc<Shared>, machine: &Machine, call_id: String, arguments: Value) {
        let cancel = CancellationToken::new();
        let execution = Execution::new(call_id.clone(), INSPECT.to_owned(), canonical_json(&arguments))
            .scanned(&shared.options.safety);
        let inspection = inspect_call::begin(shared, machine, arguments);
        let stopped = cancel.clone();
        let span = tool_span(INSPECT, &call_id);
        let inspecting = async move {
            let began = Instant::now();
            tokio::select! {
                biased;
                () = stopped.cancelled() => execution.over(Err(ToolError::Cancelled), began.elapsed(), Stop::Cancelled),
                inspected = inspection => match inspected {
                    Ok(inspected) => execution.inspected(inspected, began.elapsed()),
                    Err(error) => execution.over(Err(error), began.elapsed(), Stop::None),
                },
            }
        };
        let handle = self.tasks.spawn(inspecting.instrument(span));
        let effect_id = EffectId::new(format!("inspect-{call_id}"));
        self.running.insert(handle.id(), Running { call_id, tool: INSPECT.to_owned(), effect_id, cancel });
    }

    /// Searches the tools that the model was not told about.
    pub(super) fn search(&mut self, shared: &Arc<Shared>, machine: &Machine, call_id: String, arguments: Value) {
        let execution = Execution::new(call_id.clone(), SEARCH.to_owned(), canonical_json(&arguments))
            .scanned(&shared.options.safety);
        let began = Instant::now();
        let found = tool_search::find(&shared.options, machine, arguments);
        let finished = async move {
            match found {
                Ok(found) => execution.searched(found, began.elapsed()),
                Err(error) => execution.over(Err(error), began.elapsed(), Stop::None),
            }
        };
        let handle = self.tasks.spawn(finished.instrument(tool_span(SEARCH, &call_id)));
        let effect_id = EffectId::new(format!("search-{call_id}"));
        let running = Running { call_id, tool: SEARCH.to_owned(), effect_id, cancel: CancellationToken::new() };
        self.running.insert(handle.id(), running);
    }

    /// Draws on a canvas. It is short and either happened or did not, so nothing stops it half-way.
    pub(super) fn draw(
        &mut self,
        shared: &Arc<Shared>,
        machine: &Machine,
        call_id: String,
        effect_id: String,
        tool: String,
        arguments: Value,
    ) {
        let execution =
            Execution::new(call_id.clone(), tool.clone(), canonical_json(&arguments)).scanned(&shared.options.safety);
        let drawing = Drawing::prepare(machine, &call_id, effect_id.clone(), &tool, arguments);
        let shared = Arc::clone(shared);
        let span = tool_span(&tool, &call_id);
        let drawing = async move {
            let began = Instant::now();
            let drawn = match drawing {
                Ok(drawing) => drawing.carry_out(shared).await,
                Err(error) => Err(error),
            };
            match drawn {
                Ok(drawn) => execution.drawn(drawn, began.elapsed()),
                Err(error) => execution.over(Err(error), began.elapsed(), Stop::None),
            }
        };
        let handle = self.tasks.spawn(drawing.instrument(span));
        let effect_id = EffectId::new(effect_id);
        self.running.insert(handle.id(), Running { call_id, tool, effect_id, cancel: CancellationToken::new() });
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

    fn over(&self, running: Running) -> Running {
        self.progress.close(&running.call_id);
        running
    }

    /// The outcome of the next call that ends, or the next call whose effect is about to begin.
    pub(super) async fn next(&mut self) -> ToolNews {
        let ended = tokio::select! {
            biased;
            Some(begun) = self.beginning.1.recv() => return ToolNews::Begun(begun),
            ended = self.tasks.join_next_with_id() => ended,
        };
        ToolNews::Finished(Box::new(match ended {
            Some(Ok((id, finished))) => {
                let running = self.running.remove(&id);
                self.reported.extend(running.map(|running| self.over(running).effect_id));
                finished
            }
            Some(Err(error)) => {
                let running = self.running.remove(&error.id()).map(|running| self.over(running));
                let (call_id, tool) = running.map(|running| (running.call_id, running.tool)).unwrap_or_default();
                let execution = Execution::new(call_id, tool, String::new());
                execution.over(Err(ToolError::Internal(error.to_string())), Duration::ZERO, Stop::None)
            }
            None => std::future::pending().await,
        }))
    }
}

/// The span of a call, inside that of its run.
fn tool_span(tool: &str, call_id: &str) -> Span {
    tracing::error_span!("tool_call", tool, call_id, outcome = Empty, error = Empty)
}

/// How a call ended, in the words of its span.
fn outcome(error: Option<&StableErrorEnvelope>) -> &'static str {
    match error.map(|error| error.code.as_str()) {
        None => "ok",
        Some("tool_timeout") => "timeout",
        Some("tool_cancelled") => "cancelled",
        Some("tool_outcome_unknown") => "unknown",
        Some(_) => "error",
    }
}

/// Whether a call was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    None,
    Cancelled,
    TimedOut,
}

/// What the call may reveal beside what its result's label says; looked at before the call, because a program may remove what it read.
async fn revealed_by(
    shared: &Arc<Shared>,
    tool: &Arc<dyn Tool>,
    given: Label,
    workspace: &Arc<Workspace>,
) -> Result<Option<Label>, ToolError> {
    let (shared, tool, workspace) = (Arc::clone(shared), Arc::clone(tool), Arc::clone(workspace));
    let look = move || revealable(&given, tool.declaration(), &workspace, &shared.trees, &shared.options.programs_read);
    tokio::task::spawn_blocking(look).await.map_err(|error| ToolError::Internal(error.to_string()))
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

/// Which untrusted results a guarded run shows to its planner in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inline {
    /// None: they are held in variables.
    Nothing,
    /// Those that are untrusted only because of what the call could read in the workspace.
    UntrustedByPlace,
    /// All.
    Everything,
}

/// What the outcome of a call is made from.
struct Execution {
    call_id: String,
    tool: String,
    arguments: String,
    /// How the tool's results are classified, if it says more than a label.
    class: Option<OutputClass>,
    server: Option<String>,
    /// Whose data a result holds.
    origin: Option<DataOrigin>,
    /// What a result may hold beside what its own label says.
    revealed: Option<Label>,
    /// Which untrusted results a guarded run shows to its planner.
    inline: Inline,
    /// Absent only where a call never ran.
    safety: Option<Safety>,
}

impl Execution {
    fn new(call_id: String, tool: String, arguments: String) -> Self {
        Self {
            call_id,
            tool,
            arguments,
            class: None,
            server: None,
            origin: None,
            revealed: None,
            inline: Inline::Nothing,
            safety: None,
        }
    }

    fn scanned(mut self, safety: &Safety) -> Self {
        self.safety = Some(safety.clone());
        self
    }

    fn of(mut self, tool: &Arc<dyn Tool>) -> Self {
        let declaration = tool.declaration();
        self.server.clone_from(&declaration.server);
        self.origin = declaration.origin();
        let says_more = !declaration.fields.is_empty() || !declaration.named.is_empty();
        self.class = says_more.then(|| declaration.classification().output);
        self.inline = match (declaration.shown_inline, declaration.labels_results) {
            (false, _) => Inline::Nothing,
            (true, true) => Inline::Everything,
            (true, false) => Inline::UntrustedByPlace,
        };
        self
    }

    fn by_mode(self) -> Self {
        Self { inline: Inline::Nothing, ..self }
    }

    fn revealing(self, revealed: Option<Label>) -> Self {
        Self { revealed, ..self }
    }

    /// What lies in the workspace is shown, and what a program prints that could read nothing else. What came over the network, or was given to it by reference, is not.
    fn showing(&self, own: &Label) -> Showing {
        match self.inline {
            Inline::Everything => Showing::Inline,
            Inline::UntrustedByPlace if own.integrity < Integrity::Untrusted => Showing::Inline,
            Inline::UntrustedByPlace | Inline::Nothing => Showing::ByMode,
        }
    }

    /// The label of a result. What Palyra itself says about a call reveals nothing.
    fn label(&self, own: Label) -> Label {
        let own = match &self.origin {
            Some(origin) if own.origins.is_empty() && own.integrity > Integrity::Operator => {
                own.of_origin(origin.clone())
            }
            _ => own,
        };
        match &self.revealed {
            Some(revealed) if own.integrity > Integrity::Operator => own.join(revealed),
            _ => own,
        }
    }

    fn drawn(self, drawn: Drawn, took: Duration) -> Input {
        let attestation = self.attest(&drawn.content, took, Stop::None);
        let text = CallResult::of_text(drawn.content, Label::system(), attestation);
        self.finish(CallResult { canvas: Some(drawn.canvas), ..text })
    }

    fn searched(self, found: FoundTools, took: Duration) -> Input {
        let attestation = self.attest(&found.content, took, Stop::None);
        let text = CallResult::of_text(found.content, Label::system(), attestation);
        self.finish(CallResult { found_tools: found.names, ..text })
    }

    fn inspected(self, inspected: Inspected, took: Duration) -> Input {
        let Inspected { content, data, label, server, showing } = inspected;
        let attestation = self.attest(&content, took, Stop::None);
        self.finish(CallResult { data, server, showing, ..CallResult::of_text(content, label, attestation) })
    }

    fn over(self, result: Result<ToolOutput, ToolError>, took: Duration, stop: Stop) -> Input {
        match result {
            Ok(output) => {
                let attestation = attested(self.attest(&output.content, took, stop), output.execution);
                let showing = self.showing(&output.label);
                let label = self.label(output.label);
                let result = CallResult {
                    // What built-in tools tell programs repeats their text; only classified data is kept.
                    data: self.server.as_ref().and(output.data),
                    class: self.class.clone(),
                    server: self.server.clone(),
                    origin: self.origin.clone(),
                    failure: output.failure,
                    broke_off: output.broke_off,
                    truncated: output.truncated,
                    artifact: output.artifact.map(|artifact| artifact.digest),
                    changes: output.changes,
                    showing,
                    ..CallResult::of_text(output.content, label, attestation)
                };
                self.finish(result)
            }
            Err(_) if stop == Stop::TimedOut => {
                let message = format!("`{}` did not end within its time limit", self.tool);
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
        let attestation = self.attest(&content, took, stop);
        let text = CallResult::of_text(content, Label::system(), attestation);
        // Whose tool it was says whose words the failure may depend on.
        let (server, origin, class) = (self.server.clone(), self.origin.clone(), self.class.clone());
        self.finish(CallResult { error: Some(error), server, origin, class, ..text })
    }

    fn attest(&self, content: &str, took: Duration, stop: Stop) -> ToolAttestation {
        ToolAttestation {
            call_id: self.call_id.clone(),
            execution_sha256: Digest::of_parts(&[self.tool.as_bytes(), self.arguments.as_bytes(), content.as_bytes()]),
            executor: EXECUTOR.to_owned(),
            tier: None,
            fallback_reasons: Vec::new(),
            limits_used: LimitsUsed {
                wall_ms: millis(took),
                output_bytes: Some(content.len() as u64),
                ..LimitsUsed::default()
            },
            timed_out: stop == Stop::TimedOut,
        }
    }

    fn finish(self, mut result: CallResult) -> Input {
        if let Some(safety) = &self.safety {
            safety.before_prompt(&mut result);
        }
        // Every call ends here, inside its span.
        let span = Span::current();
        span.record("outcome", outcome(result.error.as_ref()));
        if let Some(error) = &result.error {
            span.record("error", error.code.as_str());
        }
        tracing::trace!(target: CONTENT, result = result.content);
        Input::ToolFinished { call_id: self.call_id, tool: self.tool, result: Box::new(result) }
    }
}

/// Puts in what whoever executed the call elsewhere says about it.
fn attested(mut attestation: ToolAttestation, facts: Option<ExecutionFacts>) -> ToolAttestation {
    if let Some(facts) = facts {
        attestation.executor = facts.executor;
        attestation.tier = facts.tier;
        attestation.fallback_reasons = facts.fallback_reasons;
        attestation.timed_out |= facts.timed_out;
        attestation.limits_used.cpu_ms = facts.cpu_ms;
        attestation.limits_used.memory_bytes = facts.memory_bytes;
        attestation.limits_used.output_bytes = facts.output_bytes.or(attestation.limits_used.output_bytes);
    }
    attestation
}

/// How long a call may take: what is configured, unless the tool declares a longer time because it knows when to end by itself.
fn time_limit(declared: Duration, configured: Duration) -> Duration {
    if declared > DEFAULT_TIMEOUT { declared } else { declared.min(configured) }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
