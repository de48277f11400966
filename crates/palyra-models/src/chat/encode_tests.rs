//! Requests as servers expect them.

use std::sync::Arc;

use std::collections::BTreeSet;

use palyra_common::RunId;

use super::*;
use crate::chat::habits::{GiveBack, Habits};
use crate::message::{Message, ToolCallRequest, ToolSpec};
use crate::part::{Part, PartKind};
use crate::reasoning::ReasoningBlock;
use crate::request::{Purpose, ReasoningEffort};
use crate::wire::ToolNames;

fn request() -> ModelRequest {
    let call = |id: &str, arguments: &str| ToolCallRequest {
        id: id.into(),
        name: "palyra.fs.read".into(),
        arguments: arguments.into(),
    };
    ModelRequest {
        messages: vec![
            Message::system("be good"),
            Message::user("read a"),
            Message::assistant("", vec![call("c1", r#"{"path":"a"}"#), call("c2", "oops")]),
            Message::tool_result("c1", "palyra.fs.read", "text"),
            Message::tool_error("c2", "palyra.fs.read", "error: not JSON"),
            Message::assistant("done", Vec::new()),
        ]
        .into(),
        tools: [ToolSpec {
            name: "palyra.fs.read".into(),
            description: "Reads".into(),
            input_schema: json!({"type": "object"}).into(),
        }]
        .into(),
        max_output_tokens: Some(5),
        ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, Vec::new())
    }
}

fn written(request: &ModelRequest, habits: &Habits, lacks: &[Lacks]) -> Value {
    let names = ToolNames::for_request(request);
    let lacks: BTreeSet<Lacks> = lacks.iter().copied().collect();
    body(request, &Writer { names: &names, habits, lacks: &lacks, origin: "here", model: "m" })
}

#[test]
fn a_request_is_written_as_servers_expect_it() {
    assert_eq!(
        written(&request(), &Habits::default(), &[]),
        json!({
            "model": "m",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 5,
            "messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": "read a"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function",
                     "function": {"name": "palyra__fs__read", "arguments": "{\"path\":\"a\"}"}},
                    {"id": "c2", "type": "function",
                     "function": {"name": "palyra__fs__read", "arguments": "{\"malformed_arguments\":\"oops\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "text"},
                {"role": "tool", "tool_call_id": "c2", "content": "error: not JSON"},
                {"role": "assistant", "content": "done"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "palyra__fs__read", "description": "Reads", "parameters": {"type": "object", "properties": {}}}}],
        })
    );
}

#[test]
fn what_a_model_lacks_is_left_out_or_said_differently() {
    let mut request = request();
    request.tools = Arc::default();
    request.tool_choice = ToolChoice::Required;
    let body = written(&request, &Habits::default(), &[Lacks::StreamOptions, Lacks::MaxTokens]);
    assert_eq!(body["max_completion_tokens"], 5);
    for absent in ["stream_options", "max_tokens", "tools", "tool_choice"] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
    let openai = Habits { length: LengthField::MaxCompletionTokens, ..Habits::default() };
    assert_eq!(written(&request, &openai, &[])["max_completion_tokens"], 5);
    assert_eq!(written(&request, &openai, &[Lacks::MaxCompletionTokens])["max_tokens"], 5);
}

#[test]
fn choice_shape_and_effort_are_said_where_they_were_asked_for() {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let request = ModelRequest {
        tool_choice: ToolChoice::Forbidden,
        output: OutputShape::Json { name: "plan".into(), schema: schema.clone() },
        effort: Some(ReasoningEffort::Low),
        ..request()
    };
    let body = written(&request, &Habits::default(), &[]);
    assert_eq!(body["tool_choice"], "none");
    assert_eq!(body["reasoning_effort"], "low");
    assert_eq!(
        body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "plan", "schema": schema, "strict": true}})
    );
    let nested = Habits { effort: EffortField::Nested, ..Habits::default() };
    assert_eq!(written(&request, &nested, &[Lacks::JsonSchema])["response_format"], json!({"type": "json_object"}));
    assert_eq!(written(&request, &nested, &[])["reasoning"], json!({"effort": "low"}));
    let lacking = written(&request, &nested, &[Lacks::ResponseFormat, Lacks::Effort, Lacks::ToolChoice]);
    for absent in ["response_format", "reasoning", "reasoning_effort", "tool_choice"] {
        assert!(lacking.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn images_and_files_go_along_and_those_of_results_follow_them() {
    let image = Part { kind: PartKind::Image, media_type: "image/png".into(), name: None, data: "aWc=".into() };
    let file = Part {
        kind: PartKind::File,
        media_type: "application/pdf".into(),
        name: Some("a.pdf".into()),
        data: "cGY=".into(),
    };
    let mut request = request();
    let messages = Arc::make_mut(&mut request.messages);
    messages[1] = Message::user("look").with_parts(vec![image.clone(), file]);
    messages[3].parts.push(image);
    let body = written(&request, &Habits::default(), &[]);
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aWc="}});
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "text", "text": "look"},
            image,
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGY="}},
        ])
    );
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user", "assistant"]);
    assert_eq!(
        body["messages"][5]["content"],
        json!([{"type": "text", "text": "[belongs to the result of palyra.fs.read]"}, image])
    );
}

#[test]
fn thoughts_of_the_present_task_go_back() {
    let block = ReasoningBlock {
        origin: "here".into(),
        text: "hm".into(),
        payload: json!({"model": "m", "field": "reasoning_content"}),
        position: 0,
    };
    let mut request = request();
    let messages = Arc::make_mut(&mut request.messages);
    messages[2].reasoning.push(block.clone());
    messages[5].reasoning.push(block);
    let body = written(&request, &Habits::default(), &[]);
    assert_eq!(body["messages"][2]["reasoning_content"], "hm");
    assert!(body["messages"][5].get("reasoning_content").is_none(), "it asked for no call");
    let everything = Habits { give_back: GiveBack::Everything, ..Habits::default() };
    assert_eq!(written(&request, &everything, &[])["messages"][5]["reasoning_content"], "hm");
    let body = written(&request, &everything, &[Lacks::GivenBack]);
    assert!(body["messages"][2].get("reasoning_content").is_none());
}
