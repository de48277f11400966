//! Requests as the Responses API expects them.

use palyra_common::RunId;

use super::super::items::block;
use super::*;
use crate::message::{ToolCallRequest, ToolSpec};
use crate::request::{Purpose, ReasoningEffort};

fn call(id: &str) -> ToolCallRequest {
    ToolCallRequest { id: id.into(), name: "palyra.fs.read".into(), arguments: r#"{"path":"a"}"#.into() }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        tools: [ToolSpec {
            name: "palyra.fs.read".into(),
            description: "Reads".into(),
            input_schema: json!({"type": "object"}).into(),
        }]
        .into(),
        max_output_tokens: Some(5),
        ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, messages)
    }
}

fn written(request: &ModelRequest, lacks: &[Lacks]) -> Value {
    body(
        request,
        "m",
        &ToolNames::for_request(request),
        &lacks.iter().copied().collect(),
        crate::schema::SchemaDialect::Portable,
    )
}

fn thought(id: &str, position: u32, after: AfterText) -> ReasoningBlock {
    let item =
        json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "sealed", "status": "completed"});
    block(&item, "m", position, after)
}

#[test]
fn a_request_is_written_as_the_api_expects_it() {
    let request = request(vec![
        Message::system("be good"),
        Message::user("read a"),
        Message::assistant("", vec![call("c1")]),
        Message::tool_result("c1", "palyra.fs.read", "text"),
        Message::assistant("done", Vec::new()),
    ]);
    let run = request.run_id.to_string();
    assert_eq!(
        written(&request, &[]),
        json!({
            "model": "m", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": run, "max_output_tokens": 5,
            "input": [
                {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "be good"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "read a"}]},
                {"type": "function_call", "call_id": "c1", "name": "palyra__fs__read", "arguments": "{\"path\":\"a\"}"},
                {"type": "function_call_output", "call_id": "c1", "output": "text"},
                {"type": "message", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "done", "annotations": []}]},
            ],
            "tools": [{"type": "function", "name": "palyra__fs__read", "description": "Reads",
                       "parameters": {"type": "object", "properties": {}}, "strict": false}],
        })
    );
}

#[test]
fn choice_shape_and_effort_are_said_unless_they_are_not_known() {
    let request = ModelRequest {
        tool_choice: ToolChoice::Required,
        output: OutputShape::Json { name: "plan".into(), schema: json!({"type": "object"}) },
        effort: Some(ReasoningEffort::High),
        ..request(vec![Message::user("x")])
    };
    let body = written(&request, &[]);
    assert_eq!(body["tool_choice"], "required");
    assert_eq!(body["reasoning"], json!({"effort": "high", "summary": "auto"}));
    let format = json!({"type": "json_schema", "name": "plan", "schema": {"type": "object"}, "strict": false});
    assert_eq!(body["text"], json!({ "format": format }));
    let lacks = [Lacks::ResponseFormat, Lacks::Effort, Lacks::SealedReasoning, Lacks::CacheKey, Lacks::ToolChoice];
    let body = written(&request, &lacks);
    for absent in ["text", "reasoning", "include", "prompt_cache_key", "tool_choice"] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn thoughts_go_back_into_their_places() {
    let thoughts = vec![
        thought("r0", 0, AfterText::No),
        thought("r1", 0, AfterText::Yes),
        thought("r2", 1, AfterText::Yes),
        thought("nothing behind it", 2, AfterText::Yes),
        ReasoningBlock { origin: "anthropic".into(), ..thought("foreign", 0, AfterText::No) },
        block(&json!({"type": "reasoning", "id": "open end", "summary": []}), "m", 0, AfterText::No),
        block(&json!({"type": "reasoning", "id": "x", "encrypted_content": "s"}), "another", 0, AfterText::No),
    ];
    let message = Message::assistant("I look", vec![call("c1"), call("c2")]).with_reasoning(thoughts.clone());
    let shown = |request: &ModelRequest, lacks: &[Lacks]| -> Vec<String> {
        let body = written(request, lacks);
        let name = |item: &Value| ["call_id", "id", "role"].iter().find_map(|f| item[*f].as_str().map(str::to_owned));
        body["input"].as_array().unwrap().iter().filter_map(name).collect()
    };
    let with_text = request(vec![message.clone()]);
    assert_eq!(shown(&with_text, &[]), ["r0", "assistant", "r1", "c1", "r2", "c2"]);
    assert_eq!(shown(&with_text, &[Lacks::SealedReasoning]), ["assistant", "c1", "c2"]);
    let without_text = request(vec![Message { content: String::new(), ..message }]);
    assert_eq!(shown(&without_text, &[]), ["r0", "r1", "c1", "r2", "c2"]);
    let item = &written(&with_text, &[])["input"][0];
    assert_eq!(*item, json!({"type": "reasoning", "id": "r0", "summary": [], "encrypted_content": "sealed"}));
    let nothing_said = request(vec![Message::assistant("", Vec::new()).with_reasoning(thoughts)]);
    assert_eq!(shown(&nothing_said, &[]), Vec::<String>::new());
}

#[test]
fn images_and_files_go_along_in_messages_and_in_results() {
    let image = Part { kind: PartKind::Image, media_type: "image/png".into(), name: None, data: "aWc=".into() };
    let file = Part { kind: PartKind::File, media_type: "application/pdf".into(), name: None, data: "cGY=".into() };
    let request = request(vec![
        Message::user("").with_parts(vec![image.clone(), file]),
        Message::tool_result("c1", "t", "seen").with_parts(vec![image]),
    ]);
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,aWc="});
    let file = json!({"type": "input_file", "filename": "file", "file_data": "data:application/pdf;base64,cGY="});
    let body = written(&request, &[]);
    assert_eq!(body["input"][0]["content"], json!([image, file]));
    assert_eq!(body["input"][1]["output"], json!([{"type": "input_text", "text": "seen"}, image]));
}
