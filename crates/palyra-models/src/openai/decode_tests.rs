//! Events as the API, and servers that copy it, send them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::assembler::{AssembledTurn, TurnAssembler};
use crate::error::ModelErrorClass;
use crate::wire::no_verdict;

fn decoder() -> Decoder {
    Decoder::new(ToolNames::default(), no_verdict, "m".to_owned())
}

fn turn(events: &VecDeque<ModelEvent>) -> AssembledTurn {
    let mut assembler = TurnAssembler::new();
    for event in events {
        assembler.push(event).unwrap();
    }
    assembler.finish()
}

fn read(list: &[Value]) -> Result<AssembledTurn, ModelError> {
    let (mut decoder, mut events) = (decoder(), VecDeque::new());
    for event in list {
        if decoder.read(&event.to_string(), &mut events)? == Flow::Ended {
            break;
        }
    }
    decoder.finish(&mut events)?;
    Ok(turn(&events))
}

fn numbered(events: &[Value], times: usize) -> Vec<Value> {
    let with_number = |(number, event): (usize, &Value)| {
        let mut event = event.clone();
        event["sequence_number"] = number.into();
        std::iter::repeat_n(event, times)
    };
    events.iter().enumerate().flat_map(with_number).collect()
}

fn whole() -> Vec<Value> {
    vec![
        json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs", "summary": []}}),
        json!({"type": "response.reasoning_summary_part.added", "item_id": "rs", "summary_index": 0, "part": {}}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs", "summary_index": 0, "delta": "hm"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs",
            "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "seal"}}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "ms", "content": []}}),
        json!({"type": "response.output_text.delta", "item_id": "ms", "output_index": 1, "content_index": 0, "delta": "I "}),
        json!({"type": "response.output_text.delta", "item_id": "ms", "output_index": 1, "content_index": 0, "delta": "look"}),
        json!({"type": "response.output_text.done", "item_id": "ms", "output_index": 1, "content_index": 0, "text": "I look"}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "id": "fc",
            "call_id": "c1", "name": "palyra__fs__read", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": 2, "delta": "{\"path\""}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": 2, "delta": ":\"a\"}"}),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc", "output_index": 2, "arguments": "{\"path\":\"a\"}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": {"type": "function_call", "id": "fc",
            "call_id": "c1", "name": "palyra__fs__read", "arguments": "{\"path\":\"a\"}"}}),
        json!({"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 50,
        "output_tokens": 9, "input_tokens_details": {"cached_tokens": 32}, "output_tokens_details": {"reasoning_tokens": 4}},
        "output": [
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "seal"},
            {"type": "message", "id": "ms", "content": [{"type": "output_text", "text": "I look"}]},
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "palyra__fs__read", "arguments": "{\"path\":\"a\"}"},
        ]}}),
    ]
}

fn assert_whole(turn: &AssembledTurn) {
    assert_eq!(turn.text, "I look");
    let calls: Vec<_> = turn.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
    assert_eq!(calls, [("c1", "palyra.fs.read")]);
    assert_eq!(turn.tool_calls[0].arguments, "{\"path\":\"a\"}");
    assert_eq!(turn.stop_reason, StopReason::ToolUse);
    assert_eq!(turn.usage, Usage { cached_tokens: 32, reasoning_tokens: 4, ..Usage::plain(50, 9) });
    assert_eq!(turn.reasoning.len(), 1);
    assert_eq!(turn.reasoning[0].payload["item"]["encrypted_content"], "seal");
    assert_eq!((turn.reasoning[0].position, &turn.reasoning[0].payload["after_text"]), (0, &json!(false)));
}

#[test]
fn a_whole_answer_is_read() {
    let turn = read(&whole()).unwrap();
    assert_whole(&turn);
    assert_eq!(turn.reasoning[0].text, "hm");
}

#[test]
fn an_event_that_comes_twice_counts_once() {
    assert_whole(&read(&numbered(&whole(), 2)).unwrap());
}

#[test]
fn a_server_that_numbers_everything_alike_loses_nothing() {
    let events: Vec<Value> = whole()
        .into_iter()
        .map(|mut event| {
            event["sequence_number"] = 0.into();
            event
        })
        .collect();
    assert_whole(&read(&events).unwrap());
}

#[test]
fn what_the_deltas_left_out_comes_from_the_closing_events() {
    let closing: Vec<Value> =
        whole().into_iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let completed = whole().pop().unwrap();
    assert_whole(&read(&[closing, vec![completed.clone()]].concat()).unwrap());
    assert_whole(&read(std::slice::from_ref(&completed)).unwrap());
    let (mut decoder, mut events) = (decoder(), VecDeque::new());
    decoder.read_document(&completed["response"].to_string(), &mut events).unwrap();
    decoder.finish(&mut events).unwrap();
    assert_whole(&turn(&events));
}

#[test]
fn endings_are_told_apart() {
    let incomplete = |reason: &str| {
        json!({"type": "response.incomplete", "response": {"status": "incomplete", "output": [],
            "incomplete_details": {"reason": reason}}})
    };
    assert_eq!(read(&[incomplete("max_output_tokens")]).unwrap().stop_reason, StopReason::MaxTokens);
    // Servers that copy the API leave the reason out, or name the event wrongly.
    for (event, response) in [
        ("response.completed", json!({"status": "incomplete", "output": []})),
        ("response.incomplete", json!({"output": [], "incomplete_details": null})),
    ] {
        let cut = read(&[json!({"type": event, "response": response})]).unwrap();
        assert_eq!(cut.stop_reason, StopReason::MaxTokens, "{event}");
    }
    assert_eq!(read(&[incomplete("content_filter")]).unwrap().stop_reason, StopReason::ContentFilter);
    let refusal = json!({"type": "response.refusal.delta", "item_id": "m", "content_index": 0, "delta": "I will not"});
    let done = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    let turn = read(&[refusal, done.clone()]).unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason), ("I will not", StopReason::ContentFilter));
    assert_eq!(read(&[done]).unwrap().stop_reason, StopReason::EndTurn);
}

#[test]
fn failures_keep_their_cause() {
    let table = [
        (
            json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "rate_limit_exceeded", "message": "slow"}}}),
            ModelErrorClass::RateLimit,
        ),
        (
            json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "server_error", "message": "oops"}}}),
            ModelErrorClass::Transient,
        ),
        (
            json!({"type": "error", "code": "context_length_exceeded", "message": "too long", "param": null}),
            ModelErrorClass::ContextTooLong,
        ),
        (json!({"type": "error", "error": {"type": "insufficient_quota", "message": "pay"}}), ModelErrorClass::Quota),
        (json!({"error": {"code": "invalid_api_key", "message": "key"}}), ModelErrorClass::Auth),
        (json!({"hello": "world"}), ModelErrorClass::Malformed),
        (json!([1]), ModelErrorClass::Malformed),
    ];
    for (event, class) in table {
        assert_eq!(read(std::slice::from_ref(&event)).unwrap_err().class, class, "{event}");
    }
    assert_eq!(read(&[]).unwrap_err().class, ModelErrorClass::Malformed);
    assert_eq!(decoder().read("{", &mut VecDeque::new()).unwrap_err().class, ModelErrorClass::Malformed);
    assert!(decoder().read_document("{\"choices\": []}", &mut VecDeque::new()).is_err());
}

/// Documents made of the words of the wire, put together at random.
fn nonsense() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "response.output_text.delta",
        "response.output_item.added",
        "response.output_item.done",
        "response.function_call_arguments.delta",
        "response.completed",
        "function_call",
        "reasoning",
        "message",
        "completed",
        "{\"a\":",
        "é🦀",
        "",
    ]);
    let name = prop::sample::select(vec![
        "type",
        "item",
        "response",
        "output",
        "delta",
        "item_id",
        "output_index",
        "content",
        "text",
        "summary",
        "usage",
        "status",
        "arguments",
        "call_id",
        "name",
        "sequence_number",
        "error",
        "input_tokens",
    ]);
    let leaf = prop_oneof![word.prop_map(Value::from), any::<u64>().prop_map(Value::from), Just(Value::Null)];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn no_documents_make_it_panic(list in prop::collection::vec(nonsense(), 0..8)) {
        let _ = read(&list);
        let (mut decoder, mut events) = (decoder(), VecDeque::new());
        for document in &list {
            let _ = decoder.read_document(&document.to_string(), &mut events);
        }
    }
}
