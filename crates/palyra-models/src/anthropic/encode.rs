//! From a request to the body of a Messages call.

use serde_json::{Map, Value, json};

use super::dialect::{AnswerForm, Force, Refused, Thoughts};
use super::generation::{Generation, Thinking};
use super::shape::AnswerTool;
use super::turns;
use crate::dialogue::Dialogue;
use crate::request::{ModelRequest, OutputShape, ToolChoice};
use crate::schema::{SchemaDialect, anthropic_answer, declared};
use crate::wire::ToolNames;

/// A body, and what has to be known about it to read the answer.
#[derive(Debug)]
pub(super) struct Encoded {
    /// The body.
    pub(super) body: Value,
    /// The tool that takes the answer, if that is how its shape is demanded.
    pub(super) answer_tool: Option<AnswerTool>,
    /// What is said about thinking.
    pub(super) thinking: Thinking,
    /// How the answer's shape is demanded.
    pub(super) form: AnswerForm,
    /// Whether a tool has to be called.
    pub(super) force: Force,
    /// Whether earlier thoughts are given back.
    pub(super) thoughts: Thoughts,
}

/// The body for this request.
pub(super) fn encode(
    request: &ModelRequest,
    model: &str,
    names: &ToolNames,
    refused: Refused,
    thoughts: Thoughts,
    schemas: SchemaDialect,
) -> Encoded {
    let generation = Generation::of(model);
    let dialogue = Dialogue::of(&request.messages);
    let mut tools = declarations(request, names, schemas);
    let taken: Vec<String> = tools.iter().filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned)).collect();

    let (format, answer_tool) = match &request.output {
        OutputShape::Text => (None, None),
        OutputShape::Json { name, schema } => {
            let strict = (generation.takes_format() && !refused.format).then(|| anthropic_answer(schema)).flatten();
            match strict {
                Some(strict) => (Some(json!({ "type": "json_schema", "schema": strict })), None),
                None => {
                    let tool = AnswerTool::new(name, schema, &taken);
                    tools.push(tool.declaration(schema, schemas));
                    (None, Some(tool))
                }
            }
        }
    };
    let mut choice = tool_choice(request, answer_tool.as_ref(), tools.len());
    let kind = choice.as_ref().and_then(|choice| choice.get("type")?.as_str());
    let force = if matches!(kind, Some("any" | "tool")) { Force::Yes } else { Force::No };
    let mut instructions: Vec<String> = dialogue.instructions.iter().map(|text| (*text).to_owned()).collect();
    if force == Force::Yes && refused.force {
        // What the model may not be forced to, it is told.
        choice = None;
        instructions.push("Do not answer in words: call one of the tools.".to_owned());
    }
    let mut thinking = Thinking::plan(generation, request.effort, request.max_output_tokens, refused);
    // A model that has to call a tool may not think first; and one with a budget for thinking must have thought before.
    let thought = thoughts == Thoughts::Given && turns::thought_throughout(&dialogue);
    if choice.is_some() && force == Force::Yes || (matches!(thinking, Thinking::Budget(_)) && !thought) {
        thinking = Thinking::Unsaid;
    }

    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    let bound = request
        .max_output_tokens
        .unwrap_or_else(|| generation.usual_answer().saturating_add(thinking.extra_tokens(request.effort)));
    body.insert("max_tokens".to_owned(), bound.max(1).into());
    body.insert("stream".to_owned(), true.into());
    if let Some(system) = system(&instructions) {
        body.insert("system".to_owned(), system);
    }
    // Blocks of thinking are kept whether or not more is asked for: the API passes over those that it has no use for.
    let messages = turns::encode(&dialogue, request.stable_messages as usize, names, thoughts);
    body.insert("messages".to_owned(), messages.into());
    // Tools stand before the instructions, so the mark on the instructions covers both.
    if let Some(last) = tools.last_mut().and_then(Value::as_object_mut).filter(|_| instructions.is_empty()) {
        last.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    let form = match (&format, &answer_tool) {
        (Some(_), _) => AnswerForm::Schema,
        (None, Some(_)) => AnswerForm::Tool,
        (None, None) => AnswerForm::Free,
    };
    say_thinking(thinking, format, refused, &mut body);
    Encoded { body: Value::Object(body), answer_tool, thinking, form, force, thoughts }
}

/// The same request as the counting of tokens takes it.
pub(super) fn for_counting(encoded: Encoded) -> Value {
    let mut body = encoded.body;
    if let Some(fields) = body.as_object_mut() {
        fields.remove("max_tokens");
        fields.remove("stream");
    }
    body
}

/// The tools. A conversation with calls needs them declared even when none may be called any more.
fn declarations(request: &ModelRequest, names: &ToolNames, schemas: SchemaDialect) -> Vec<Value> {
    if !request.tools.is_empty() {
        let tools = declared(request, names, schemas)
            .into_iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema }));
        return tools.collect();
    }
    let mut used: Vec<&str> = Vec::new();
    for call in request.messages.iter().flat_map(|message| &message.tool_calls) {
        if !used.contains(&call.name.as_str()) {
            used.push(&call.name);
        }
    }
    let declare = |name: &str| {
        json!({
            "name": names.to_wire(name),
            "description": "Was used earlier; it is not available now.",
            "input_schema": { "type": "object" },
        })
    };
    used.into_iter().map(declare).collect()
}

fn tool_choice(request: &ModelRequest, answer_tool: Option<&AnswerTool>, declared: usize) -> Option<Value> {
    if declared == 0 {
        return None;
    }
    let usable = !request.tools.is_empty() && request.tool_choice != ToolChoice::Forbidden;
    match (answer_tool, usable, request.tool_choice) {
        // The answer is a call itself, so that a call has to come is no harm to other tools.
        (Some(_), true, _) | (None, true, ToolChoice::Required) => Some(json!({ "type": "any" })),
        (Some(tool), false, _) => Some(json!({ "type": "tool", "name": tool.name, "disable_parallel_tool_use": true })),
        (None, false, _) => Some(json!({ "type": "none" })),
        (None, true, ToolChoice::Auto | ToolChoice::Forbidden) => None,
    }
}

fn system(instructions: &[String]) -> Option<Value> {
    let mut blocks: Vec<Value> = instructions.iter().map(|text| json!({ "type": "text", "text": text })).collect();
    let last = blocks.last_mut()?.as_object_mut()?;
    last.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    Some(blocks.into())
}

fn say_thinking(thinking: Thinking, format: Option<Value>, refused: Refused, body: &mut Map<String, Value>) {
    let mut output = Map::new();
    match thinking {
        Thinking::Unsaid => {}
        Thinking::Budget(tokens) => {
            body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": tokens }));
        }
        Thinking::Adaptive(effort) => {
            let mut said = json!({ "type": "adaptive" });
            if let Some(fields) = said.as_object_mut().filter(|_| !refused.display) {
                // Newer models keep their thinking to themselves unless asked.
                fields.insert("display".to_owned(), "summarized".into());
            }
            body.insert("thinking".to_owned(), said);
            output.insert("effort".to_owned(), effort.into());
        }
        Thinking::Effort(effort) => {
            output.insert("effort".to_owned(), effort.into());
        }
    }
    output.extend(format.map(|format| ("format".to_owned(), format)));
    if !output.is_empty() {
        body.insert("output_config".to_owned(), Value::Object(output));
    }
}
