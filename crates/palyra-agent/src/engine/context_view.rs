//! What the model saw: the context of one call, rebuilt from the tape and taken apart.
//!
//! The tape holds every input, so the context of any past call is what the machine makes of the inputs before it; the digest in the record of the call
//! tells whether it is the same one.
//!
//! Tokens are counted as budgets count them, for the model that answered: the parts add up to what was reserved for. What the provider counted
//! itself stands beside it, and what the request costs on each wire. A planner that is no language model reads no descriptions of tools, so none are
//! counted for it. Which tools there are is not on the tape, only which of them the run came to need: the others are those of now.

use palyra_common::{Digest, Label, RunId};
use palyra_journal::StoredRecord;
use palyra_models::{Message, ModelRequest, Purpose, TokenCounter};

use super::Engine;
use super::images::Images;
use super::request_size::REFERENCE_MODEL;
use super::summaries::SetAside;
use super::tool_offer::ToolOffer;
use super::wire_cost::{self, WireCost};
use crate::agents::RunAgent;
use crate::context::{self, Item};
use crate::error::AgentError;
use crate::machine::{Action, Input, Machine};
use crate::spec::{RunSpec, ToolSelection};
use crate::tape::TapeEntry;

/// The context of one model call.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextView {
    /// Which turn.
    pub turn: u32,
    /// Which attempt at it.
    pub attempt: u32,
    /// Turns that the run had so far.
    pub turns: u32,
    /// Tokens that fit the model's window.
    pub window: u32,
    /// Tokens of the request by the provider's own count, where it told.
    pub counted: Option<u64>,
    /// How many of the first messages are the same in every call of the run, so that providers can keep them at the ready.
    pub stable_messages: u32,
    /// What the record of the call says about the messages.
    pub digest: Digest,
    /// Whether the messages below are exactly those.
    pub is_exact: bool,
    /// The parts, in the order of the model's reading.
    pub segments: Vec<ContextSegment>,
    /// What its summary stands for, as it was, oldest first.
    pub originals: Vec<ContextSegment>,
    /// The model that answered, or would.
    pub model: String,
    /// Whether a language model answered. Others read no descriptions of tools.
    pub is_language_model: bool,
    /// The tools that it was told about, in the order of the request.
    pub offered: Vec<OfferedTool>,
    /// Names of tools that it could have searched for.
    pub deferred: Vec<String>,
    /// What the request costs on each wire; empty if no language model answered.
    pub wires: Vec<WireCost>,
}

/// A tool that a model was told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// About how many tokens its description takes.
    pub tokens: u32,
    /// Whether every run is told about it.
    pub is_core: bool,
}

/// One part of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextSegment {
    /// What it is.
    pub kind: SegmentKind,
    /// Where it comes from, such as a file or a tool.
    pub source: String,
    /// About how many tokens it takes.
    pub tokens: u32,
    /// How far it may be trusted and shown, if it was labelled.
    pub label: Option<Label>,
    /// What the model reads; for tools, their names.
    pub text: String,
}

palyra_common::runtime_contract_enum! {
    /// What a part of a context is.
    pub enum SegmentKind("context_segment") {
        /// Tools that the model was told about.
        Tools = "tools",
        /// Palyra's instructions.
        Instructions = "instructions",
        /// A file of the project.
        Project = "project",
        /// Workspace, date and platform.
        Surroundings = "surroundings",
        /// The operator's instructions for the agent.
        Agent = "agent",
        /// An earlier exchange of the session.
        History = "history",
        /// The task, or what a person wrote later, with attached files.
        User = "user",
        /// What the model said and wanted.
        Assistant = "assistant",
        /// The result of a call.
        ToolResult = "tool_result",
        /// What the judge of the objective said.
        Verdict = "verdict",
        /// A summary of older parts.
        Summary = "summary",
    }
}

impl Engine {
    /// What the model saw in one turn of a run, by default the newest.
    ///
    /// # Errors
    /// When there is no such run or turn, or its tape does not read.
    pub async fn context(&self, run_id: RunId, turn: Option<u32>) -> Result<ContextView, AgentError> {
        let tape = self.whole_tape(run_id).await?;
        if tape.is_empty() {
            self.run(run_id).await?;
        }
        let call = find(&tape, turn)?.ok_or(AgentError::TurnNotFound { run_id, turn })?;
        let options = &self.shared.options;
        let spec = call.machine.spec();
        let ToolOffer { tools, core, deferred } = ToolOffer::to(options, spec, &call.tools_in_use);
        let is_language_model = spec.tools == ToolSelection::Needed;
        let mut messages = context::messages(spec, call.machine.items());
        let is_exact = context::digest(&messages) == call.digest;
        // The digest is of the words alone; pictures are known by digests of their own.
        let (artifacts, named) = (options.journal.artifacts().clone(), spec.clone());
        let images = tokio::task::spawn_blocking(move || Images::load(&artifacts, &named)).await;
        let words = messages.clone();
        images.unwrap_or_default().attach(spec, &mut messages);
        let request = ModelRequest {
            model: spec.model.name.clone(),
            agent: spec.agent.clone(),
            ..ModelRequest::new(run_id, call.turn, Purpose::Turn, Vec::new())
        };
        let likeliest = || options.provider.may_answer(&request).into_iter().next().map(|asked| asked.model);
        let model = call.answered_by.clone().or_else(likeliest).unwrap_or_else(|| spec.model.name.clone());
        let counter = options.spending.counter(&model);
        let offered: Vec<OfferedTool> = tools
            .iter()
            .enumerate()
            .map(|(at, tool)| OfferedTool {
                name: tool.name.clone(),
                tokens: if is_language_model { count(counter.tool(tool).tokens) } else { 0 },
                is_core: at < core,
            })
            .collect();
        let mut segments = of_tools(&offered, count(counter.around(if is_language_model { tools.len() } else { 0 })));
        segments.extend(take_apart(spec, call.machine.items(), &messages, &counter));
        let wires = if is_language_model {
            let reference = options.spending.counter(REFERENCE_MODEL);
            let (spec, tools) = (spec.clone(), tools);
            let request = ModelRequest {
                model: model.clone(),
                max_output_tokens: options.max_output_tokens,
                messages: words.into(),
                tools: tools.into(),
                ..request
            };
            // Encoding and counting a long conversation several times takes a while.
            let counted = tokio::task::spawn_blocking(move || wire_cost::of(&spec, &request, core, &reference)).await;
            counted.unwrap_or_default()
        } else {
            Vec::new()
        };
        let originals = call.set_aside.whole().iter().map(|item| original(spec, item, &counter)).collect();
        Ok(ContextView {
            turn: call.turn,
            attempt: call.attempt,
            turns: call.turns,
            window: spec.model.context_tokens,
            counted: call.counted,
            stable_messages: context::stable_messages(spec),
            digest: call.digest,
            is_exact,
            segments,
            originals,
            model,
            is_language_model,
            offered,
            deferred,
            wires,
        })
    }
}

/// A call on a tape, with the machine as it stood then.
struct Call {
    machine: Machine,
    turn: u32,
    attempt: u32,
    turns: u32,
    digest: Digest,
    set_aside: SetAside,
    /// Tools that the run had come to need.
    tools_in_use: Vec<String>,
    /// The model that answered, if one did.
    answered_by: Option<String>,
    /// Tokens of the request as that model's provider counted them.
    counted: Option<u64>,
}

/// The last call of the wanted turn, or the last of all.
fn find(tape: &[StoredRecord], wanted: Option<u32>) -> Result<Option<Call>, AgentError> {
    let mut machine: Option<Machine> = None;
    let mut found: Option<Call> = None;
    let mut set_aside = SetAside::default();
    let mut turns = 0;
    for record in tape {
        match (TapeEntry::from_record(record)?, &mut machine) {
            (TapeEntry::Input(Input::Accepted(spec)), None) => machine = Some(Machine::accept(*spec, record.at)),
            (TapeEntry::Input(input), Some(machine)) => {
                set_aside.note(machine, &input);
                if let (Input::ModelTurnFinished(turn), Some(call)) = (&input, &mut found)
                    && (turn.turn, turn.attempt) == (call.turn, call.attempt)
                {
                    call.answered_by = turn.answering.as_ref().map(|answering| answering.model.clone());
                    // The numbers of a turn that was tried several times are those of all its tries.
                    call.counted =
                        Some(turn.usage.input_tokens).filter(|tokens| *tokens > 0 && turn.attempts.is_empty());
                }
                // Replay proper judges whether the tape is sound; here a step that is refused shows in the digest.
                let _ = machine.step(input, record.at);
            }
            (TapeEntry::Action(Action::CallModel { turn, attempt, context, tools, .. }), Some(machine)) => {
                turns = turns.max(turn);
                if wanted.is_none_or(|wanted| wanted == turn) {
                    let set_aside = set_aside.clone();
                    let machine = machine.clone();
                    let (answered_by, counted) = (None, None);
                    found = Some(Call {
                        machine,
                        turn,
                        attempt,
                        turns,
                        digest: context,
                        set_aside,
                        tools_in_use: tools,
                        answered_by,
                        counted,
                    });
                }
            }
            _ => {}
        }
    }
    Ok(found.map(|call| Call { turns, ..call }))
}

/// The tools of every run and the others, with what is wrapped around the whole request.
fn of_tools(offered: &[OfferedTool], around: u32) -> Vec<ContextSegment> {
    let segment = |is_core: bool, around: u32| {
        let tools: Vec<&OfferedTool> = offered.iter().filter(|tool| tool.is_core == is_core).collect();
        let tokens = tools.iter().map(|tool| tool.tokens).fold(around, u32::saturating_add);
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let what = if is_core { "core" } else { "more" };
        let source = format!("{} {what} tool{}", tools.len(), if tools.len() == 1 { "" } else { "s" });
        ContextSegment { kind: SegmentKind::Tools, source, tokens, label: None, text: names.join(", ") }
    };
    let mut segments = vec![segment(true, around)];
    if offered.iter().any(|tool| !tool.is_core) {
        segments.push(segment(false, 0));
    }
    segments
}

/// The first message by what it was made of: Palyra's instructions, the project's files, the surroundings. What joins them counts for the first.
fn instructions(spec: &RunSpec, message: &Message, counter: &TokenCounter) -> Vec<ContextSegment> {
    let part = |kind, source: &str, text: &str, label| ContextSegment {
        kind,
        source: source.to_owned(),
        tokens: count(counter.text(text).tokens),
        label,
        text: text.to_owned(),
    };
    let project = spec.project.iter().map(|file| (SegmentKind::Project, file));
    let surroundings = spec.surroundings.iter().map(|place| (SegmentKind::Surroundings, place));
    let others: Vec<ContextSegment> = project
        .chain(surroundings)
        .map(|(kind, item)| part(kind, &item.source, &item.text, Some(item.label.clone())))
        .collect();
    let mut own = part(SegmentKind::Instructions, "palyra", &spec.system, None);
    let rest: u32 = others.iter().map(|part| part.tokens).fold(0, u32::saturating_add);
    own.tokens = count(counter.message(message).tokens).saturating_sub(rest);
    std::iter::once(own).chain(others).collect()
}

/// Names each message by what it was made of: instructions of Palyra and of the agent, two per exchange of the history, one per item.
fn take_apart(spec: &RunSpec, items: &[Item], messages: &[Message], counter: &TokenCounter) -> Vec<ContextSegment> {
    let (history, task) = (context::instruction_messages(spec), context::task_message(spec));
    let mut segments = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        if index == 0 {
            segments.extend(instructions(spec, message, counter));
            continue;
        }
        let (kind, source, label) = if index < history {
            let version = spec.profile.as_ref().map_or(0, |agent| agent.version);
            (SegmentKind::Agent, format!("{}, version {version}", spec.agent), Some(RunAgent::label()))
        } else if index < task {
            let (exchange, is_answer) = (spec.history.get((index - history) / 2), (index - history) % 2 == 1);
            let who = if is_answer { "answered before" } else { "asked before" };
            let label = if is_answer {
                exchange.map(|exchange| exchange.label.clone())
            } else {
                exchange.and_then(|exchange| exchange.prompt_label.clone())
            };
            (SegmentKind::History, who.to_owned(), label)
        } else {
            describe(items.get(index - task))
        };
        segments.push(ContextSegment {
            kind,
            source,
            tokens: count(counter.message(message).tokens),
            label,
            text: text_of(message),
        });
    }
    segments
}

/// An item that a summary stands for.
fn original(spec: &RunSpec, item: &Item, counter: &TokenCounter) -> ContextSegment {
    let (kind, source, label) = describe(Some(item));
    let message = context::message(spec, item);
    ContextSegment { kind, source, tokens: count(counter.message(&message).tokens), label, text: text_of(&message) }
}

fn count(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

fn describe(item: Option<&Item>) -> (SegmentKind, String, Option<Label>) {
    match item {
        Some(item @ Item::User { attachments, .. }) => {
            let files: Vec<&str> = attachments.iter().map(|file| file.source.as_str()).collect();
            (SegmentKind::User, files.join(", "), Some(item.label()))
        }
        Some(Item::Assistant { calls, .. }) => {
            let tools: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            (SegmentKind::Assistant, tools.join(", "), None)
        }
        Some(Item::ToolResult { tool, label, .. }) => (SegmentKind::ToolResult, tool.clone(), Some(label.clone())),
        Some(Item::Verdict { label, .. }) => (SegmentKind::Verdict, "objective".to_owned(), Some(label.clone())),
        Some(Item::Summary { replaces, label, .. }) => {
            (SegmentKind::Summary, format!("{replaces} earlier steps"), Some(label.clone()))
        }
        None => (SegmentKind::User, String::new(), None),
    }
}

fn text_of(message: &Message) -> String {
    let mut text = message.content.clone();
    for call in &message.tool_calls {
        text.push_str(&format!("{}[calls {} {}]", if text.is_empty() { "" } else { "\n" }, call.name, call.arguments));
    }
    text
}
