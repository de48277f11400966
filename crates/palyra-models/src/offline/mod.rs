//! A deterministic planner for plain requests. It is not a language model; surfaces say so when a run begins, and it says so itself when it is asked for more
//! than it understands.
//!
//! It gives a newcomer a working agent without a key and without a network, and tests a run that needs no script. What it
//! understands is listed in `answer::ABILITIES`, which is also its help text. `lex` cuts a message into words and quotations,
//! `request` into requests; `phrases`, `files`, `searching`, `counting`, `moving` and `writing` know the wordings; `steps` knows the calls that a request takes,
//! `reading` those that look at files; `command` makes arguments of a command line and reads what a program did; `plan` decides the next turn from the messages
//! alone; `shown` reads results, `refusal` says in plain words why a call failed, `summary` extracts, `answer` speaks.
//!
//! Unlike a language model it knows whether it did what was asked. An answer that says no ends with [`StopReason::NotDone`].
//!
//! INVARIANT: a path in a call was named by the person in the last user message, is a file name in a directory that both were named there, or is `.`,
//! the workspace itself. Nothing that stands in a file or in any other tool result ever becomes a path, a command or a request.

mod answer;
mod command;
mod counting;
mod files;
mod lex;
mod moving;
mod phrases;
mod plan;
mod reading;
mod refusal;
mod request;
mod searching;
mod shown;
mod steps;
mod summary;
mod writing;

#[cfg(test)]
mod phrase_tests;
#[cfg(test)]
mod run_tests;

use async_trait::async_trait;
use futures::stream;
use palyra_common::AuxiliaryTaskKind;

use self::plan::Decision;
use self::steps::Verdict;
use crate::error::{ModelError, ModelErrorClass};
use crate::event::{ModelEvent, StopReason, Usage};
use crate::message::Role;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::{ModelRequest, Purpose};
use crate::unknown_model::UnknownModel;

/// Name of the offline planner as a provider.
pub const NAME: &str = "offline";
/// Its name as a model.
const MODEL: &str = "offline-planner";
/// Reading costs it nothing, but a conversation has to end somewhere; a common size of real models.
const CONTEXT_TOKENS: u32 = 128_000;

/// The offline planner.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineProvider;

impl OfflineProvider {
    /// The planner; it has nothing to configure.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// The full name of the planner.
    #[must_use]
    pub fn full_name() -> String {
        format!("{NAME}/{MODEL}")
    }

    /// Whether a model's name, in full or not, is that of the planner.
    pub(crate) fn is_named(model: &str) -> bool {
        model.strip_prefix(NAME).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model) == MODEL
    }
}

#[async_trait]
impl ModelProvider for OfflineProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn describe(&self) -> ProviderInfo {
        ProviderInfo {
            name: NAME.to_owned(),
            model: MODEL.to_owned(),
            context_tokens: CONTEXT_TOKENS,
            is_language_model: false,
        }
    }

    /// It has no models to choose from, and must not pass for one that was asked for.
    async fn resolve(&self, _agent: &str, model: Option<&str>) -> Result<ProviderInfo, UnknownModel> {
        match model {
            Some(name) if name != NAME && !Self::is_named(name) => {
                Err(UnknownModel::like(name, [Self::full_name().as_str()]))
            }
            _ => Ok(self.describe()),
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        match request.purpose {
            Purpose::Turn => Ok(turn(&request)),
            Purpose::Auxiliary(AuxiliaryTaskKind::Summary) => Ok(summary_stream(&request)),
            Purpose::Auxiliary(kind) => Err(ModelError::new(
                ModelErrorClass::Permanent,
                format!("the offline planner cannot do `{kind}`; it takes a language model"),
            )),
        }
    }
}

fn turn(request: &ModelRequest) -> ModelStream {
    let (text, calls, stop) = match plan::decide(request) {
        Decision::Calls(calls) => (answer::intention(&calls), calls, StopReason::ToolUse),
        Decision::Answer(outcomes) => {
            let done = outcomes.iter().all(|outcome| outcome.verdict == Verdict::Done);
            let stop = if done { StopReason::EndTurn } else { StopReason::NotDone };
            (answer::report(&outcomes), Vec::new(), stop)
        }
        Decision::NotUnderstood(words) => (answer::not_understood(&words), Vec::new(), StopReason::NotDone),
    };
    let calls = calls.into_iter().enumerate().map(|(index, call)| ModelEvent::ToolCallDelta {
        index: u32::try_from(index).ok(),
        id: Some(format!("offline_{}_{}", request.turn, index + 1)),
        name: Some(call.tool.to_owned()),
        arguments: call.arguments.to_string(),
    });
    answer_stream(&text, calls.collect(), stop)
}

/// An extractive summary of what the messages say, within the budget of the request or of the contract.
pub(crate) fn summary_stream(request: &ModelRequest) -> ModelStream {
    let contract = AuxiliaryTaskKind::Summary.contract().budget_tokens;
    let budget = request.max_output_tokens.unwrap_or(contract).min(contract);
    let said = request.messages.iter().filter(|message| message.role != Role::System);
    let text = said.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n");
    let summary = summary::within(&summary::without_frames(&text), budget);
    answer_stream(&summary, Vec::new(), StopReason::EndTurn)
}

/// No language model answers, so no tokens are used.
fn answer_stream(text: &str, calls: Vec<ModelEvent>, stop: StopReason) -> ModelStream {
    let usage = Usage::plain(0, 0);
    let events: Vec<_> = answer::deltas(text)
        .into_iter()
        .map(ModelEvent::TextDelta)
        .chain(calls)
        .chain([ModelEvent::Usage(usage), ModelEvent::Finished(stop)])
        .map(Ok)
        .collect();
    Box::pin(stream::iter(events))
}
