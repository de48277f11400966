//! Carrying out `palyra.vars.inspect`.
//!
//! An auxiliary task reads the untrusted text and nothing else; its output fits the schema or the list of labels it was given, or there is none. Text that
//! it extracts is as untrusted as what it read, so it stays in a variable; numbers, flags and values out of a list are no text and are shown.

use std::sync::Arc;

use palyra_common::{Label, RunMode, ToStableError as _};
use palyra_flow::{Reference, Variables};
use palyra_tools::ToolError;
use serde_json::{Map, Value, json};

use super::Shared;
use super::auxiliary::{Task, carry_out};
use crate::auxiliary::{AuxiliaryError, AuxiliaryInput, ClassificationInput, ExtractionInput, MAX_TEXT};
use crate::error::AgentError;
use crate::machine::{Machine, Showing};
use crate::own_tools::{INSPECT, InspectInput, Want};

/// What an inspection gave.
pub(super) struct Inspected {
    pub(super) content: String,
    pub(super) data: Option<Value>,
    pub(super) label: Label,
    pub(super) server: Option<String>,
    pub(super) showing: Showing,
}

/// Everything an inspection needs, taken from the run before it starts.
struct Inspection {
    label: Label,
    server: Option<String>,
    asked: Asked,
}

enum Asked {
    Text(String),
    Task(Box<Task>),
}

/// Begins an inspection; nothing of the run is borrowed while it goes on.
pub(super) fn begin(
    shared: &Arc<Shared>,
    machine: &Machine,
    arguments: Value,
) -> impl Future<Output = Result<Inspected, ToolError>> + Send + use<> {
    let prepared = prepare(machine, arguments);
    let is_strict = machine.spec().mode == RunMode::Strict;
    let shared = Arc::clone(shared);
    async move {
        let Inspection { label, server, asked } = prepared?;
        match asked {
            Asked::Text(content) => Ok(Inspected { content, data: None, label, server, showing: Showing::Revealed }),
            Asked::Task(task) => {
                let wanted = task.input.clone();
                let done = match carry_out(&shared, *task).await.map_err(failed) {
                    Ok(done) => done,
                    // Whether a text has what was looked for is for the variable to know.
                    Err(error) if is_strict && !matches!(error, ToolError::Cancelled) => {
                        return Ok(Inspected {
                            content: error.to_string(),
                            data: None,
                            label,
                            server,
                            showing: Showing::ByMode,
                        });
                    }
                    Err(error) => return Err(error),
                };
                let data = done.output.to_value();
                let values = shown(&data, &wanted).to_string();
                Ok(Inspected {
                    content: data.to_string(),
                    data: Some(data),
                    label: done.label,
                    server,
                    showing: Showing::Values(values),
                })
            }
        }
    }
}

fn prepare(machine: &Machine, arguments: Value) -> Result<Inspection, ToolError> {
    let input: InspectInput =
        serde_json::from_value(arguments).map_err(|error| wrong("variable", error.to_string()))?;
    let reference = Reference::parse(&input.variable)
        .ok_or_else(|| wrong("variable", format!("`{}` is not a variable such as `$v1`", input.variable)))?;
    let variables = Variables(machine.readings());
    let missing = || wrong("variable", format!("there is no variable `{}`", input.variable));
    let reading = variables.reading(reference.variable).ok_or_else(missing)?;
    let spec = machine.spec();
    let value = match variables.value(reference.variable, &reference.path) {
        Some(value) => value,
        // What a variable holds must not show by what can be asked about it.
        None if spec.mode == RunMode::Strict => Value::Null,
        None => return Err(missing()),
    };
    if input.want == Want::Text && spec.mode == RunMode::Strict {
        return Err(wrong(
            "want",
            "this run is strict: untrusted text is never shown; use `fields` or `label`".to_owned(),
        ));
    }
    let mut text = bounded(match value {
        Value::String(text) => text,
        other => other.to_string(),
    });
    if text.trim().is_empty() && spec.mode == RunMode::Strict {
        // An empty text would be refused, and that it is empty would show.
        text = "(nothing)".to_owned();
    }
    let label = reading.label.clone().from_source(reading.described());
    let InspectInput { want, schema, labels, question, .. } = input;
    let task = |input: AuxiliaryInput| {
        input.check().map_err(refused)?;
        Ok::<_, ToolError>(Asked::Task(Box::new(Task::of_run(spec, machine.counters().turns, input, label.clone()))))
    };
    let asked = match want {
        Want::Text => Asked::Text(text),
        Want::Label => task(AuxiliaryInput::Classification(ClassificationInput { text, labels, question }))?,
        Want::Fields => {
            let schema = schema.unwrap_or_default();
            task(AuxiliaryInput::Extraction(ExtractionInput { text, schema, question }))?
        }
    };
    Ok(Inspection { label, server: reading.server.clone(), asked })
}

/// An input that was refused, as the planner knows its fields.
fn refused(error: AuxiliaryError) -> ToolError {
    match error {
        AuxiliaryError::Input { field, why, .. } => {
            let field = if field == "text" { "variable" } else { field.as_str() };
            wrong(field, why)
        }
        other => ToolError::Internal(other.to_string()),
    }
}

fn failed(error: AgentError) -> ToolError {
    match error {
        AgentError::Auxiliary(error @ AuxiliaryError::Input { .. }) => refused(error),
        AgentError::Auxiliary(AuxiliaryError::Cancelled(_)) => ToolError::Cancelled,
        other => other.to_stable().into(),
    }
}

/// Numbers, flags and values out of a list as they are; text only as being there.
fn shown(data: &Value, input: &AuxiliaryInput) -> Value {
    let listed = |name: &str, value: &Value| match input {
        AuxiliaryInput::Classification(_) => true,
        AuxiliaryInput::Extraction(input) => input
            .schema
            .pointer("/properties")
            .and_then(|properties| properties.get(name))
            .and_then(|property| property.get("enum"))
            .and_then(Value::as_array)
            .is_some_and(|options| options.contains(value)),
        _ => false,
    };
    let mut values = Map::new();
    for (name, value) in data.as_object().into_iter().flatten() {
        let open = listed(name, value) || matches!(value, Value::Number(_) | Value::Bool(_) | Value::Null);
        values.insert(name.clone(), if open { value.clone() } else { json!("‹withheld›") });
    }
    Value::Object(values)
}

fn bounded(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let mut end = MAX_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

fn wrong(field: &str, message: String) -> ToolError {
    ToolError::argument(INSPECT, field, "invalid_inspection", message)
}
