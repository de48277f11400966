use proptest::prelude::*;

use super::*;
use crate::any_json::{any_json, stands};
use crate::wire::no_verdict;

const KEYS: &[&str] = &[
    "type",
    "index",
    "content_block",
    "delta",
    "usage",
    "text",
    "thinking",
    "signature",
    "data",
    "id",
    "name",
    "input",
    "partial_json",
    "stop_reason",
    "stop_details",
    "explanation",
    "input_tokens",
    "output_tokens",
    "message",
    "answer",
];
const WORDS: &[&str] = &[
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "message",
    "ping",
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "text_delta",
    "thinking_delta",
    "signature_delta",
    "input_json_delta",
    "citations_delta",
    "end_turn",
    "refusal",
    "give_x",
    "{\"answer\":1}",
    "{",
];

proptest! {
    #[test]
    fn no_stream_confuses_it(documents in prop::collection::vec(any_json(KEYS, WORDS), 0..12), holds in 0_usize..3) {
        let tool = |holds| AnswerTool { name: "give_x".to_owned(), holds };
        let tool = [None, Some(tool(Holds::Answer)), Some(tool(Holds::Wrapped))].into_iter().nth(holds).flatten();
        stands(Decoder::new(ToolNames::default(), tool, no_verdict), &documents);
    }
}

#[test]
fn a_call_after_the_end_of_the_answer_is_left_out() {
    let mut decoder = Decoder::new(ToolNames::default(), None, no_verdict);
    let mut events = VecDeque::new();
    for event in [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "done" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": "x", "name": "t", "input": { "a": 1 } } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "{}" } }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "message_stop" }),
    ] {
        decoder.read(&event.to_string(), &mut events).unwrap();
    }
    decoder.finish(&mut events).unwrap();
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::ToolCallDelta { .. })), "{events:?}");
    assert_eq!(events.back(), Some(&ModelEvent::Finished(StopReason::EndTurn)));
    assert!(events.iter().any(|event| matches!(event, ModelEvent::Repaired(_))), "it is said");
}
