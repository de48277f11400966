//! Answers as servers of this wire send them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::ModelErrorClass;
use crate::reasoning::ReasoningBlock;

fn read(chunks: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = Decoder::new(ToolNames::default(), crate::wire::no_verdict, "here".into(), "m".into());
    let mut events = VecDeque::new();
    for chunk in chunks {
        decoder.read(&chunk.to_string(), &mut events)?;
    }
    decoder.finish(&mut events)?;
    Ok(events.into())
}

#[test]
fn text_in_all_its_forms() {
    let delta = |content: Value| json!({"choices": [{"index": 0, "delta": {"content": content}}]});
    let events = read(&[
        json!({"choices": [{"delta": {"role": "assistant", "content": null}}]}),
        delta(json!("a")),
        delta(json!("")),
        delta(json!([{"type": "text", "text": "b"}])),
        json!({"choices": [{"delta": {"reasoning_content": "hm", "refusal": "c"}}]}),
        json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}}),
    ]);
    assert_eq!(
        events.unwrap(),
        [
            ModelEvent::TextDelta("a".into()),
            ModelEvent::TextDelta("b".into()),
            ModelEvent::ReasoningDelta("hm".into()),
            ModelEvent::TextDelta("c".into()),
            ModelEvent::Reasoning(ReasoningBlock {
                origin: "here".into(),
                text: "hm".into(),
                payload: json!({"model": "m", "field": "reasoning_content"}),
                position: 0,
            }),
            ModelEvent::Usage(Usage::plain(4, 2)),
            ModelEvent::Finished(StopReason::ContentFilter),
        ]
    );
}

#[test]
fn calls_in_all_their_forms() {
    let call = |index: Option<u32>, id: Option<&str>, name: Option<&str>, arguments: &str| ModelEvent::ToolCallDelta {
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    };
    let events = read(&[
        json!({"choices": [{"delta": {"tool_calls": [
            {"index": 0, "id": "a", "type": "function", "function": {"name": "palyra__fs__read", "arguments": ""}},
            {"id": "b", "function": {"name": "x", "arguments": {"k": 1}}},
            {"index": 0, "function": {"arguments": "{}"}},
            {"index": 7, "id": "", "function": {"name": "", "arguments": null}},
        ]}}]}),
        json!({"choices": [{"message": {"function_call": {"name": "old", "arguments": "{}"}}, "finish_reason": "tool_calls"}]}),
    ]);
    assert_eq!(
        events.unwrap(),
        [
            call(Some(0), Some("a"), Some("palyra.fs.read"), ""),
            call(None, Some("b"), Some("x"), "{\"k\":1}"),
            call(Some(0), None, None, "{}"),
            call(Some(0), None, Some("old"), "{}"),
            ModelEvent::Finished(StopReason::ToolUse),
        ]
    );
}

#[test]
fn what_is_no_answer_is_an_error() {
    assert_eq!(read(&[]).unwrap_err().class, ModelErrorClass::Malformed);
    assert_eq!(read(&[json!([1])]).unwrap_err().class, ModelErrorClass::Malformed);
    assert_eq!(read(&[json!({"choices": "x"})]).unwrap_err().class, ModelErrorClass::Malformed);
    assert_eq!(read(&[json!({"error": {"message": "overloaded"}})]).unwrap_err().class, ModelErrorClass::Transient);
    let late = json!({"choices": [{"finish_reason": "error", "error": {"code": 429, "message": "slow"}}]});
    assert_eq!(read(&[late]).unwrap_err().class, ModelErrorClass::RateLimit);
    let flat = json!({"object": "error", "message": "no", "code": 401});
    assert_eq!(read(&[flat]).unwrap_err().class, ModelErrorClass::Auth);
    let mut decoder = Decoder::new(ToolNames::default(), crate::wire::no_verdict, "here".into(), "m".into());
    assert!(decoder.read("{\"choices\": [", &mut VecDeque::new()).is_err());
}

/// Documents made of the words of the wire, put together at random.
fn nonsense() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec!["stop", "tool_calls", "assistant", "function", "{\"a\":", "é🦀", ""]);
    let name = prop::sample::select(vec![
        "choices",
        "delta",
        "message",
        "content",
        "tool_calls",
        "function",
        "arguments",
        "name",
        "id",
        "index",
        "usage",
        "finish_reason",
        "refusal",
        "reasoning",
        "reasoning_details",
        "error",
        "prompt_tokens",
        "function_call",
        "text",
    ]);
    let leaf = prop_oneof![word.prop_map(Value::from), any::<u64>().prop_map(Value::from), Just(Value::Null)];
    leaf.prop_recursive(5, 32, 6, move |inner| {
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
    }
}

#[test]
fn a_call_after_the_end_of_the_answer_is_left_out() {
    let events = read(&[
        json!({"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "t", "arguments": "{}"}}]}}]}),
        json!({"choices": [{"delta": {"content": "more"}, "finish_reason": "tool_calls"}]}),
    ])
    .unwrap();
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::ToolCallDelta { .. })), "{events:?}");
    assert_eq!(events.first(), Some(&ModelEvent::TextDelta("done".into())));
    assert_eq!(events.last(), Some(&ModelEvent::Finished(StopReason::EndTurn)));
    assert!(events.iter().any(|event| matches!(event, ModelEvent::Repaired(_))), "it is said");
}

#[test]
fn half_a_surrogate_pair_does_not_end_an_answer() {
    let mut decoder = Decoder::new(ToolNames::default(), crate::wire::no_verdict, "here".into(), "m".into());
    let mut events = VecDeque::new();
    decoder.read(r#"{"choices":[{"delta":{"content":"a\ud83d"},"finish_reason":"stop"}]}"#, &mut events).unwrap();
    assert_eq!(events.pop_front(), Some(ModelEvent::TextDelta("a\u{fffd}".into())));
}
