//! From a request to the body of a `streamGenerateContent` call.

use serde_json::{Map, Value, json};

use super::names;
use super::series::Series;
use super::turns;
use crate::dialogue::Dialogue;
use crate::request::{ModelRequest, OutputShape, ToolChoice};
use crate::schema::{DeclaredTool, SchemaDialect, answer, declared};
use crate::wire::ToolNames;

/// The body for this request.
pub(super) fn body(request: &ModelRequest, model: &str, names: &ToolNames) -> Value {
    let series = Series::of(model);
    let dialogue = Dialogue::of(&request.messages);
    let mut instructions: Vec<String> = dialogue.instructions.iter().map(|text| (*text).to_owned()).collect();
    let usable = !request.tools.is_empty();

    let mut config = Map::new();
    if let Some(limit) = request.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), limit.max(1).into());
    }
    if let OutputShape::Json { schema, .. } = &request.output {
        if usable && !series.takes_shape_with_tools() {
            // The two exclude each other in these models, so the shape is asked for in words.
            instructions.push(format!("Your final answer has to be one JSON document of this JSON Schema: {schema}"));
        } else {
            config.insert("responseMimeType".to_owned(), "application/json".into());
            if series.takes_json_schema() {
                config.insert("responseJsonSchema".to_owned(), answer(schema, SchemaDialect::GeminiJson));
            } else {
                config.insert("responseSchema".to_owned(), answer(schema, SchemaDialect::GeminiOpenApi));
            }
        }
    }
    if let Some(thinking) = series.thinking(request.effort, request.max_output_tokens) {
        config.insert("thinkingConfig".to_owned(), thinking);
    }

    let mut body = Map::new();
    if !instructions.is_empty() {
        let parts: Vec<Value> = instructions.iter().map(|text| json!({ "text": text })).collect();
        body.insert("systemInstruction".to_owned(), json!({ "parts": parts }));
    }
    body.insert("contents".to_owned(), turns::encode(&dialogue, names, series).into());
    if usable {
        let tools = declared(request, names, series.schemas());
        let declarations: Vec<Value> = tools.into_iter().map(|tool| declaration(tool, series)).collect();
        body.insert("tools".to_owned(), json!([{ "functionDeclarations": declarations }]));
        let mode = match request.tool_choice {
            ToolChoice::Auto => "AUTO",
            ToolChoice::Required => "ANY",
            ToolChoice::Forbidden => "NONE",
        };
        body.insert("toolConfig".to_owned(), json!({ "functionCallingConfig": { "mode": mode } }));
    }
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    Value::Object(body)
}

fn declaration(tool: DeclaredTool<'_>, series: Series) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), names::acceptable(tool.name).into());
    function.insert("description".to_owned(), tool.description.into());
    if series.takes_json_schema() {
        function.insert("parametersJsonSchema".to_owned(), tool.schema);
    } else if tool.schema.get("properties").is_some() {
        // A tool without arguments says nothing about them.
        function.insert("parameters".to_owned(), tool.schema);
    }
    Value::Object(function)
}
