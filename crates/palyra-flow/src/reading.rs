//! One result that a run has read, with everything the rule needs to know about it.

use palyra_common::{Integrity, Label, OutputClass};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one tool call gave back. Readings outlive the planner's context: summarising the context does not launder a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The call.
    pub call_id: String,
    /// Its tool.
    pub tool: String,
    /// The outside server the tool belongs to, if any.
    pub server: Option<String>,
    /// Label of the whole.
    pub label: Label,
    /// How its fields are classified.
    pub class: OutputClass,
    /// Whether every text argument of the call was named by the user, so that the user pointed at this place.
    pub source: SourceNaming,
    /// The result as text.
    pub text: String,
    /// The result as structured data, if the tool gave any.
    pub data: Option<Value>,
    /// Signs that it tries to give orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicions: Vec<String>,
    /// The variable that holds it, if the planner was not shown the text.
    pub variable: Option<u32>,
    /// Whether it came with the task, rather than from a call of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
}

/// Who chose the place that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceNaming {
    /// The user named it.
    NamedByUser,
    /// Nobody did: the call asked for everything that there is.
    Everything,
    /// The model, or something it read, chose it.
    #[default]
    ChosenOtherwise,
}

impl Reading {
    /// Whether anyone may have written it.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.label.integrity == Integrity::Untrusted
    }

    /// How a person is told where something was found.
    #[must_use]
    pub fn described(&self) -> String {
        format!("the result of {} ({})", self.tool, self.call_id)
    }
}
