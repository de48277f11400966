//! Scripts: fixed answers, chosen from the request alone.
//!
//! A script is TOML or JSON of the same shape:
//!
//! ```toml
//! [[script]]
//! when = "rename"              # a part of the last user message; left out: any message
//!
//! [[script.turn]]              # the first turn after the user message
//! text = ["Let me ", "look."]  # one text or several deltas
//! delay_ms = 20                # before the answer and between its deltas
//! usage = { input_tokens = 10, output_tokens = 4 }
//!
//! [[script.turn.call]]         # the calls of this turn, in order
//! tool = "palyra.fs.read"
//! arguments = { path = "notes.md" }   # a table, or a text that is sent as it is
//! id = "c1"                    # left out: call_<turn>_<position>
//!
//! [[script.turn]]
//! echo = "last_result"         # user, last_result: said after `text`
//! stop = "max_tokens"          # left out: tool_use beside calls, else end_turn
//!
//! [[script]]
//! auxiliary = "summary"        # answers auxiliary tasks of this kind instead of turns
//! turn = [{ text = "short" }]
//!
//! [[script]]
//! when = "break"
//! [[script.turn]]
//! error = { class = "rate_limit", message = "slow down", retry_after_ms = 10 }   # after the deltas, if there are any
//! ```
//!
//! A document with a bare list `turn` is one script for any message. The first script that fits is taken. Which of its
//! turns answers is the number of assistant messages after the last user message: nothing is remembered, so a run that
//! is taken up again after a crash goes on where it was.

use palyra_common::AuxiliaryTaskKind;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{ModelError, ModelErrorClass};
use crate::event::{StopReason, Usage};
use crate::message::{Message, Role};
use crate::request::{ModelRequest, Purpose};

/// A set of scripts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Scripts in the order in which they are tried.
    #[serde(default, rename = "script")]
    pub scenes: Vec<Scene>,
    /// Turns for any message, tried last.
    #[serde(default, rename = "turn")]
    pub turns: Vec<Turn>,
}

/// One script: turns for messages that fit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    /// A part of the last user message; none fits any.
    #[serde(default)]
    pub when: Option<String>,
    /// Answers auxiliary tasks of this kind instead of turns.
    #[serde(default)]
    pub auxiliary: Option<AuxiliaryTaskKind>,
    /// The turns in order.
    #[serde(default, rename = "turn")]
    pub turns: Vec<Turn>,
}

/// One answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What is said, in deltas.
    #[serde(default, deserialize_with = "one_or_many")]
    pub text: Vec<String>,
    /// Something of the request to repeat after the text.
    #[serde(default)]
    pub echo: Option<Echo>,
    /// Calls to ask for.
    #[serde(default, rename = "call")]
    pub calls: Vec<Call>,
    /// Pause before the answer and between its deltas.
    #[serde(default)]
    pub delay_ms: u64,
    /// Tokens to report.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Why to stop.
    #[serde(default)]
    pub stop: Option<StopReason>,
    /// An error instead of an end.
    #[serde(default)]
    pub error: Option<ModelErrorSpec>,
}

/// What to repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Echo {
    /// The last user message.
    User,
    /// The last tool result.
    LastResult,
}

/// A scripted tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// Arguments: an object, or a text that is sent as it is, valid or not.
    #[serde(default)]
    pub arguments: Value,
    /// Id of the call.
    #[serde(default)]
    pub id: Option<String>,
}

/// A scripted error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelErrorSpec {
    /// Its class.
    pub class: ModelErrorClass,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// How long to wait, in milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

impl ModelErrorSpec {
    /// The error itself.
    #[must_use]
    pub fn to_error(&self) -> ModelError {
        let text = if self.message.is_empty() { "scripted error" } else { &self.message };
        ModelError { retry_after_ms: self.retry_after_ms, ..ModelError::new(self.class, text) }
    }
}

impl Call {
    /// A call with these arguments.
    #[must_use]
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, id: None }
    }

    /// The arguments as a model would write them.
    #[must_use]
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            other => other.to_string(),
        }
    }

    /// The id, or the one that a call at this place gets. Both count from one.
    #[must_use]
    pub fn id_or_default(&self, turn: usize, position: usize) -> String {
        self.id.clone().unwrap_or_else(|| format!("call_{turn}_{position}"))
    }
}

impl Turn {
    /// A turn that says this.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: vec![text.into()], ..Self::default() }
    }

    /// A turn that asks for these calls.
    #[must_use]
    pub fn calls(calls: Vec<Call>) -> Self {
        Self { calls, ..Self::default() }
    }

    /// A turn that fails.
    #[must_use]
    pub fn error(class: ModelErrorClass, message: impl Into<String>) -> Self {
        let error = ModelErrorSpec { class, message: message.into(), retry_after_ms: None };
        Self { error: Some(error), ..Self::default() }
    }

    /// The deltas of this turn in answer to these messages.
    #[must_use]
    pub fn deltas(&self, messages: &[Message]) -> Vec<String> {
        let last = |role| messages.iter().rfind(|message| message.role == role).map(|message| message.content.clone());
        let echoed = match self.echo {
            None => None,
            Some(Echo::User) => last(Role::User),
            Some(Echo::LastResult) => last(Role::Tool),
        };
        self.text.iter().cloned().chain(echoed).filter(|delta| !delta.is_empty()).collect()
    }

    /// Why this turn stops.
    #[must_use]
    pub fn stop_reason(&self) -> StopReason {
        let usual = if self.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        self.stop.unwrap_or(usual)
    }
}

impl Script {
    /// A script for any message.
    #[must_use]
    pub fn new(turns: Vec<Turn>) -> Self {
        Self { scenes: Vec::new(), turns }
    }

    /// Adds turns for messages that contain this text; tried before the turns for any message.
    #[must_use]
    pub fn when(mut self, part: impl Into<String>, turns: Vec<Turn>) -> Self {
        self.scenes.push(Scene { when: Some(part.into()), auxiliary: None, turns });
        self
    }

    /// Reads JSON if the text begins with a brace, TOML otherwise.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let wrong = |error: String| {
            ModelError::new(ModelErrorClass::Permanent, format!("the model script cannot be read: {error}"))
        };
        if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
        } else {
            toml::from_str(text).map_err(|error| wrong(error.to_string()))
        }
    }

    /// The turn that answers this request, and its position from zero.
    #[must_use]
    pub fn turn_for(&self, request: &ModelRequest) -> Option<(usize, &Turn)> {
        let kind = match request.purpose {
            Purpose::Turn => None,
            Purpose::Auxiliary(kind) => Some(kind),
        };
        self.turn_at(&request.messages, kind)
    }

    /// The same for bare messages.
    #[must_use]
    pub fn turn_at(&self, messages: &[Message], kind: Option<AuxiliaryTaskKind>) -> Option<(usize, &Turn)> {
        let last_user = messages.iter().rposition(|message| message.role == Role::User);
        let said = last_user.and_then(|at| messages.get(at)).map(|message| message.content.as_str());
        let after = last_user.and_then(|at| messages.get(at + 1..)).unwrap_or_default();
        let position = after.iter().filter(|message| message.role == Role::Assistant).count();
        let fits = |scene: &&Scene| {
            scene.auxiliary == kind
                && scene.when.as_deref().is_none_or(|part| said.is_some_and(|said| said.contains(part)))
        };
        let turns = match self.scenes.iter().find(fits) {
            Some(scene) => &scene.turns,
            None if kind.is_none() => &self.turns,
            None => return None,
        };
        turns.get(position).map(|turn| (position, turn))
    }
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Text::deserialize(deserializer)? {
        Text::One(text) => vec![text],
        Text::Many(texts) => texts,
    })
}
