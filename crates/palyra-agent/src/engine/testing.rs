//! Runs without a durable tape, for programs that search for ways around the rules.
//!
//! Everything between a proposal and its effect is the product's own: the machine, the decisions, the calls, the labels of what they give and write. Left out
//! is what makes a run survive a crash: nothing is journaled, so thousands of runs fit into a second. A run that is over is gone.

use std::collections::VecDeque;
use std::sync::Arc;

use palyra_common::{ApprovalDecision, ApprovalScope, Timestamp, ToolVerdict};
use palyra_models::{StopReason, ToolCallRequest, Usage};
use palyra_tools::{SharedRegistry, Workspace};

use super::canvases::Drawing;
use super::flow::Flow;
use super::instructions::project_files;
use super::live_tape::LiveTape;
use super::tool_call::{ToolCalls, ToolNews};
use super::{Engine, Shared};
use crate::context;
use crate::error::AgentError;
use crate::machine::{Action, Activity, ApprovalRequest, Cost, Decided, Ending, Input, Machine, ModelTurn, Phase};
use crate::own_tools::{INSPECT, SEARCH};
use crate::projections;
use crate::spec::{Exchange, RunSpec};

/// How far the clock of such a run goes on with each step.
const STEP_MS: i64 = 1;

/// An engine whose runs are not recorded.
#[derive(Clone)]
pub struct UnrecordedEngine {
    shared: Arc<Shared>,
}

impl UnrecordedEngine {
    /// Runs with the parts of this engine.
    #[must_use]
    pub fn new(engine: &Engine) -> Self {
        Self { shared: Arc::clone(&engine.shared) }
    }

    /// The tools there are; those of another world take their place.
    #[must_use]
    pub fn registry(&self) -> &SharedRegistry {
        &self.shared.options.registry
    }

    /// Forgets what earlier runs wrote.
    pub fn forget_file_labels(&self) {
        self.shared.file_labels.replace(Vec::new(), Vec::new());
    }

    /// Accepts and starts a run.
    ///
    /// # Errors
    /// When its workspace cannot be opened.
    pub async fn accept(&self, mut spec: RunSpec) -> Result<UnrecordedRun, AgentError> {
        let workspace = self.shared.open_workspace(&spec.workspace, &spec.owner, spec.started_with.workspace)?;
        let project = project_files(&workspace, &self.shared.file_labels, &self.shared.options.project_files);
        spec.project = project.into_iter().filter_map(|(_, followed)| followed).collect();
        let at = Timestamp(0);
        let mut run = UnrecordedRun {
            tools: ToolCalls::new(Arc::clone(&LiveTape::new(0).progress)),
            flow: Flow::new(Arc::clone(&workspace)),
            machine: Machine::accept(spec, at),
            shared: Arc::clone(&self.shared),
            workspace,
            at,
        };
        run.feed(Input::Started, &mut |_| ApprovalDecision::Deny).await?;
        Ok(run)
    }
}

/// What became of one proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, references resolved.
    pub arguments: serde_json::Value,
    /// Permit, ask or deny.
    pub verdict: ToolVerdict,
    /// What determined it.
    pub policies: Vec<String>,
    /// Why, for the person.
    pub reasons: Vec<String>,
    /// The answer of the person, if one was asked.
    pub answered: Option<ApprovalDecision>,
    /// Whether it was begun.
    pub executed: bool,
}

/// One run.
pub struct UnrecordedRun {
    shared: Arc<Shared>,
    machine: Machine,
    workspace: Arc<Workspace>,
    tools: ToolCalls,
    flow: Flow,
    at: Timestamp,
}

impl UnrecordedRun {
    /// The machine as it is now.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether the planner may speak.
    #[must_use]
    pub fn awaits_planner(&self) -> bool {
        matches!(self.machine.state(), Phase::Running(Activity::Model { .. }))
    }

    /// What the planner is shown now, one text for each message.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        let messages = context::messages(self.machine.spec(), self.machine.items());
        messages.into_iter().map(|message| message.content).collect()
    }

    /// What a later run of the session is told of this one, if it ended with an answer.
    #[must_use]
    pub fn exchange(&self) -> Option<Exchange> {
        let Phase::Completed(Ending { answer: Some((answer, label)), .. }) = self.machine.state() else { return None };
        let spec = self.machine.spec();
        Some(Exchange {
            run_id: Some(spec.run_id),
            prompt: spec.prompt.clone(),
            prompt_label: None,
            answer: answer.clone(),
            label: label.clone(),
        })
    }

    /// One turn of the planner: these calls, carried out as far as they may be. `person` answers what is asked.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub async fn propose(
        &mut self,
        calls: Vec<(String, String)>,
        person: &mut (dyn FnMut(&ApprovalRequest) -> ApprovalDecision + Send),
    ) -> Result<Vec<Judged>, AgentError> {
        let tool_calls = calls
            .into_iter()
            .map(|(name, arguments)| ToolCallRequest { id: "c".to_owned(), name, arguments })
            .collect();
        self.feed(self.turn(String::new(), tool_calls), person).await
    }

    /// The planner's answer, which ends the run.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub async fn answer(&mut self, text: &str) -> Result<(), AgentError> {
        self.feed(self.turn(text.to_owned(), Vec::new()), &mut |_| ApprovalDecision::Deny).await.map(drop)
    }

    fn turn(&self, text: String, tool_calls: Vec<ToolCallRequest>) -> Input {
        Input::ModelTurnFinished(ModelTurn {
            turn: self.machine.counters().turns,
            attempt: 1,
            text,
            stop_reason: if tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse },
            tool_calls,
            usage: Usage::default(),
            duration_ms: 0,
            reasoning: Vec::new(),
            answering: None,
            attempts: Vec::new(),
            repairs: Vec::new(),
            cost: Cost::default(),
        })
    }

    async fn feed(
        &mut self,
        input: Input,
        person: &mut (dyn FnMut(&ApprovalRequest) -> ApprovalDecision + Send),
    ) -> Result<Vec<Judged>, AgentError> {
        let mut judged: Vec<Judged> = Vec::new();
        let mut queue = VecDeque::from([input]);
        loop {
            let next = match queue.pop_front() {
                Some(input) => input,
                None if self.tools.is_empty() => return Ok(judged),
                None => match self.tools.next().await {
                    ToolNews::Finished(finished) => *finished,
                    ToolNews::Begun(begun) => {
                        let input = Input::ToolBegun { call_id: begun.call_id };
                        // Whoever was cancelled meanwhile does not listen any more.
                        let _ = begun.recorded.send(());
                        input
                    }
                },
            };
            for action in self.step(next) {
                match action {
                    Action::Decide { call_id, tool, arguments } => {
                        let options = &self.shared.options;
                        let decided =
                            self.flow.decide(options, &self.machine, self.at, &call_id, &tool, &arguments).await;
                        judged.push(Judged::of(&decided, tool, arguments));
                        queue.push_back(Input::Decided(Box::new(decided)));
                    }
                    Action::RequestApproval(request) => {
                        let decision = person(&request);
                        if let Some(asked) = judged.iter_mut().find(|one| one.call_id == request.call_id) {
                            asked.answered = Some(decision);
                        }
                        queue.push_back(answered(&request, decision));
                    }
                    Action::Execute { call_id, effect_id, tool, arguments } => {
                        if let Some(begun) = judged.iter_mut().find(|one| one.call_id == call_id) {
                            begun.executed = true;
                        }
                        self.execute(call_id, effect_id, tool, arguments);
                    }
                    _ => {}
                }
            }
        }
    }

    fn step(&mut self, mut input: Input) -> Vec<Action> {
        self.at = Timestamp(self.at.0.saturating_add(STEP_MS));
        self.shared.label_written(&self.machine, &self.workspace, &mut input);
        let written = projections::written_files(&input, Some(self.machine.spec().run_id), self.at, 0);
        self.shared.file_labels.add(written);
        // An input that comes too late, since the run is over, changes nothing.
        self.machine.step(input, self.at).unwrap_or_default()
    }

    fn execute(&mut self, call_id: String, effect_id: String, tool: String, arguments: serde_json::Value) {
        if tool == INSPECT {
            self.tools.inspect(&self.shared, &self.machine, call_id, arguments);
        } else if tool == SEARCH {
            self.tools.search(&self.shared, &self.machine, call_id, arguments);
        } else if Drawing::is_one(&tool) {
            self.tools.draw(&self.shared, &self.machine, call_id, effect_id, tool, arguments);
        } else {
            self.tools.begin(&self.shared, &self.machine, &self.workspace, call_id, effect_id, tool, arguments);
        }
    }
}

impl Judged {
    fn of(decided: &Decided, tool: String, arguments: serde_json::Value) -> Self {
        Self {
            call_id: decided.call_id.clone(),
            tool,
            arguments,
            verdict: decided.verdict,
            policies: decided.policies.clone(),
            reasons: decided.reasons.clone(),
            answered: None,
            executed: false,
        }
    }
}

fn answered(request: &ApprovalRequest, decision: ApprovalDecision) -> Input {
    Input::ApprovalDecided {
        approval_id: request.approval_id,
        decision,
        scope: ApprovalScope::Once,
        until: None,
        by: request.owner.clone(),
        via: None,
        reason: None,
    }
}
