//! Whole requests: what counts, that nothing is left out, and that remembering changes nothing.

use palyra_common::RunId;
use proptest::prelude::*;
use serde_json::json;

use super::super::tokenizer::Encoding;
use super::*;
use crate::message::ToolCallRequest;
use crate::part::{Part, PartKind};
use crate::reasoning::ReasoningBlock;
use crate::request::Purpose;

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, messages)
}

fn tokens(model: &str, request: &ModelRequest) -> u64 {
    TokenCounter::new(model).request(request).tokens
}

#[test]
fn text_is_exact_where_the_vocabulary_is_known_and_never_below_it_elsewhere() {
    let text = "The quick brown fox jumps over the lazy dog, 12345 times; naïve 漢字 🦀.\n".repeat(20);
    let exact = Encoding::O200kBase.count(&text);
    for (model, method) in [
        ("gpt-5", CountMethod::Tokenizer),
        ("gpt-4", CountMethod::Tokenizer),
        ("claude-sonnet-4-5", CountMethod::Scaled),
    ] {
        let count = TokenCounter::new(model).text(&text);
        assert_eq!(count.method, method, "{model}");
        assert!(count.tokens >= exact, "{model}");
    }
    assert_eq!(TokenCounter::new("gpt-5").text(&text).tokens, exact);
    let scaled = TokenCounter::new("gemini-2.5-pro").text(&text).tokens;
    assert!(scaled >= (exact * 5).div_ceil(4) && scaled >= u64::from(estimate_tokens(&text)));
}

#[test]
fn everything_in_a_request_counts() {
    let plain = request(vec![Message::user("hello")]);
    let base = tokens("gpt-5", &plain);
    let long = "word ".repeat(50);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "description": long}}});
    let block = ReasoningBlock {
        origin: "anthropic".into(),
        text: long.clone(),
        payload: json!({"signature": long}),
        position: 0,
    };
    let call = ToolCallRequest { id: "c".into(), name: "t".into(), arguments: long.clone() };
    let part = Part { kind: PartKind::Image, media_type: "image/png".into(), name: None, data: "".into() };
    let mut tool = plain.clone();
    tool.tools = [ToolSpec { name: "t".into(), description: "d".into(), input_schema: schema.clone().into() }].into();
    let mut shape = plain.clone();
    shape.output = OutputShape::Json { name: "o".into(), schema };
    for (what, grown) in [
        ("content", request(vec![Message::user(format!("hello {long}"))])),
        ("another message", request(vec![Message::user("hello"), Message::assistant(long.clone(), vec![])])),
        ("a call", request(vec![Message::user("hello"), Message::assistant("", vec![call])])),
        ("a result", request(vec![Message::user("hello"), Message::tool_result("c", "t", long.clone())])),
        (
            "reasoning",
            request(vec![Message::user("hello"), Message::assistant("", vec![]).with_reasoning(vec![block])]),
        ),
        ("a picture", request(vec![Message::user("hello").with_parts(vec![part])])),
        ("a tool", tool),
        ("a shape", shape),
    ] {
        assert!(tokens("gpt-5", &grown) >= base + 50, "{what}: {} against {base}", tokens("gpt-5", &grown));
    }
}

#[test]
fn anthropic_s_own_instructions_for_tools_are_counted() {
    let mut with_tool = request(vec![Message::user("hi")]);
    let without = tokens("claude-sonnet-4-5", &with_tool);
    with_tool.tools =
        [ToolSpec { name: "t".into(), description: String::new(), input_schema: json!({}).into() }].into();
    assert!(tokens("claude-sonnet-4-5", &with_tool) >= without + 804);
}

#[test]
fn the_least_count_is_exact_for_published_vocabularies_and_lower_elsewhere() {
    let text = "The quick brown fox jumps over the lazy dog, 12345 times; naïve 漢字.\n".repeat(20);
    let exact = Encoding::O200kBase.count(&text);
    assert_eq!(TokenCounter::new("gpt-5").least_text(&text), exact);
    for model in ["claude-sonnet-4-5", "gemini-2.5-pro", "qwen3", "anything"] {
        let least = TokenCounter::new(model).least_text(&text);
        assert!(least > exact / 2 && least <= exact * 3 / 4, "{model}: {least} of {exact}");
    }
    // A script of which `o200k_base` makes several tokens per character; larger vocabularies do better.
    let rare = "བོད་ཡིག".repeat(50);
    assert!(TokenCounter::new("gemini-2.5-pro").least_text(&rare) <= rare.chars().count() as u64);
    let picture = Part { kind: PartKind::Image, media_type: "image/png".into(), name: None, data: "".into() };
    let plain = request(vec![Message::user(text.clone())]);
    let with_picture = request(vec![Message::user(text).with_parts(vec![picture])]);
    let counter = TokenCounter::new("gpt-5");
    assert_eq!((counter.least_request(&plain), counter.least_request(&with_picture)), (exact, exact));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_counter_that_is_kept_counts_as_a_new_one(texts in prop::collection::vec("[a-z ]{0,300}", 1..12)) {
        let kept = TokenCounter::new("gpt-5");
        let mut messages = Vec::new();
        for text in texts {
            messages.push(Message::user(text));
            let request = request(messages.clone());
            prop_assert_eq!(kept.request(&request), TokenCounter::new("gpt-5").request(&request));
        }
    }
}
