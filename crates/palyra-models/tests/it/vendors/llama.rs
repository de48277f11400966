//! Anthropic's wire as the real llama.cpp server speaks it.

use palyra_common::SecretString;
use palyra_models::{
    Anthropic, HttpProviderOptions, Message, ModelErrorClass, ModelEvent, ModelProvider as _, Ollama, StopReason,
    TurnAssembler,
};
use serde_json::{Value, json};

use super::{ask, request, text};
use crate::llama;

fn assembled(events: &[ModelEvent]) -> palyra_models::AssembledTurn {
    let mut assembler = TurnAssembler::new();
    for event in events {
        assembler.push(event).unwrap();
    }
    assembler.finish()
}

#[tokio::test]
async fn the_messages_wire_of_llama_cpp_is_spoken() {
    let server = tokio::task::spawn_blocking(llama::start).await.unwrap();
    let options = HttpProviderOptions {
        base_url: Some(server.address().to_owned()),
        api_key: Some(SecretString::from("none".to_owned())),
        model: Some("tiny".to_owned()),
        ..HttpProviderOptions::new("llama")
    };
    let provider = Anthropic::new(options.clone()).unwrap();

    // Plain words, streamed, with a summary in the middle and a bound.
    let mut plain = request(Some(&json!({"tools": [], "max_output_tokens": 12})));
    plain.push(Message::system("Summary of 3 earlier step(s) of this task: none"));
    let (events, error) = ask(&provider, plain.clone()).await;
    assert!(error.is_none(), "{error:?}");
    let turn = assembled(&events);
    // Noise may come to an end before its bound.
    assert!(matches!(turn.stop_reason, StopReason::MaxTokens | StopReason::EndTurn), "{turn:?}");
    assert!(turn.usage.input_tokens > 5 && turn.usage.output_tokens > 0, "{:?}", turn.usage);
    assert!(turn.usage.output_tokens <= 12, "{:?}", turn.usage);

    // Tokens, by the server's own count.
    let count = provider.count_tokens(&plain).await.unwrap();
    assert!(count > 5 && count < 2000, "{count}");

    // A call that has to be made.
    let tool = json!([{
        "name": "palyra.time.now",
        "description": "Tells the time",
        "input_schema": {"type": "object", "properties": {"zone": {"enum": ["utc", "local"]}}, "required": ["zone"]},
    }]);
    let forced = json!({"tools": tool, "tool_choice": "required", "max_output_tokens": 400});
    let (events, error) = ask(&provider, request(Some(&forced))).await;
    assert!(error.is_none(), "{error:?}");
    let turn = assembled(&events);
    let call = turn.tool_calls.first().unwrap_or_else(|| panic!("no call: {turn:?}"));
    assert_eq!(call.name, "palyra.time.now");
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    assert!(["utc", "local"].contains(&arguments["zone"].as_str().unwrap()), "{arguments}");
    // Noise goes on to call until its bound, and may be cut in the middle of a later call.
    assert!(matches!(turn.stop_reason, StopReason::ToolUse | StopReason::MaxTokens), "{turn:?}");

    // Its result goes back, and the conversation goes on. (Left to itself the model cannot call: its few tokens have none for that.)
    let mut next = request(Some(&json!({"tools": tool, "tool_choice": "required", "max_output_tokens": 400})));
    next.push(Message::assistant(&turn.text, vec![call.clone()]));
    next.push(Message::tool_error(&call.id, &call.name, "the clock is broken"));
    let (events, error) = ask(&provider, next).await;
    assert!(error.is_none(), "{error:?}");
    assert!(!events.is_empty());

    // An answer of a given shape: no Claude, so a tool takes it.
    let schema = json!({"type": "object", "properties": {"verdict": {"enum": ["yes", "no"]}}, "required": ["verdict"]});
    let output = json!({"json": {"name": "verdict", "schema": schema}});
    let shaped = json!({"tools": [], "output": output, "max_output_tokens": 400});
    let (events, error) = ask(&provider, request(Some(&shaped))).await;
    assert!(error.is_none(), "{error:?}");
    let document: Value = serde_json::from_str(&text(&events)).unwrap();
    assert!(["yes", "no"].contains(&document["verdict"].as_str().unwrap()), "{document}");

    // A conversation that does not fit.
    let mut long = plain;
    long.push(Message::user("word ".repeat(60_000)));
    let (_, error) = ask(&provider, long).await;
    assert_eq!(error.unwrap().class, ModelErrorClass::ContextTooLong);

    // A path that is none.
    let astray = HttpProviderOptions { base_url: Some(format!("{}/nowhere", server.address())), ..options };
    let error = Anthropic::new(astray).unwrap().stream(request(None)).await.map(|_| ()).unwrap_err();
    assert!(error.message.contains("check the base URL"), "{error}");
}

/// Both run models on the own machine, and people mix their addresses up.
#[tokio::test]
async fn llama_cpp_is_known_to_be_no_ollama() {
    let server = tokio::task::spawn_blocking(llama::start).await.unwrap();
    let options = HttpProviderOptions {
        base_url: Some(server.base_url()),
        model: Some("tiny".to_owned()),
        ..HttpProviderOptions::new("ollama")
    };
    let provider = Ollama::new(options).unwrap();
    let listing = provider.models().await.unwrap_err();
    let asking = provider.stream(request(Some(&json!({"tools": []})))).await.map(|_| ()).unwrap_err();
    for error in [listing, asking] {
        assert_eq!(error.class, ModelErrorClass::Permanent, "{error}");
        assert!(error.message.contains("check the base URL") && !error.message.contains("ollama pull"), "{error}");
    }
}
