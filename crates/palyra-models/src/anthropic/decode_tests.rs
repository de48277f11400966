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
