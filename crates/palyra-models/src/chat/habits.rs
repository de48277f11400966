//! In what the providers that speak chat completions differ.

use serde_json::Value;

use crate::request::ModelRequest;
use crate::schema::SchemaDialect;
use crate::wire::{Judge, no_verdict};

/// How a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffortField {
    /// `reasoning_effort`, as OpenAI has it.
    Flat,
    /// `reasoning.effort`, as OpenRouter has it.
    Nested,
}

/// What a server wants back of what its model thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GiveBack {
    /// The thoughts between the calls of the present task. Servers that have them want exactly these; thoughts about earlier
    /// tasks only cost tokens, and one server refuses them.
    PresentTask,
    /// Everything the same model thought, as it came.
    Everything,
}

/// The field that bounds an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthField {
    /// `max_tokens`, which most servers know.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's own want.
    MaxCompletionTokens,
}

/// One provider's habits.
#[derive(Debug, Clone)]
pub(crate) struct Habits {
    /// Where the provider is when nobody says otherwise; empty if it can be anywhere.
    pub usual_base_url: &'static str,
    /// What an empty path means.
    pub usual_path: &'static str,
    /// Headers that go with every request.
    pub headers: Vec<(&'static str, String)>,
    /// What it knows about its refusals.
    pub judge: Judge,
    /// How long an answer may be.
    pub length: LengthField,
    /// How much to think.
    pub effort: EffortField,
    /// What goes back of the thoughts.
    pub give_back: GiveBack,
    /// What it accepts of JSON Schema.
    pub schemas: SchemaDialect,
    /// Changes to the finished body that only this provider knows.
    pub finish: fn(&mut serde_json::Map<String, Value>, &ModelRequest, &str),
}

impl Default for Habits {
    /// What most servers do.
    fn default() -> Self {
        Self {
            usual_base_url: "",
            usual_path: "/v1",
            headers: Vec::new(),
            judge: no_verdict,
            length: LengthField::MaxTokens,
            effort: EffortField::Flat,
            give_back: GiveBack::PresentTask,
            schemas: SchemaDialect::Portable,
            finish: |_, _, _| {},
        }
    }
}
