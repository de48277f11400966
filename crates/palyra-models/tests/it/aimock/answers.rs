//! What the server says: words, calls, thoughts, documents, and how many tokens they were.

use palyra_models::{ModelRequest, OutputShape, ReasoningEffort, StopReason, Usage};
use serde_json::{Value, json};

use super::{KEY, Spoken, after, answer, request, start};

#[tokio::test]
async fn words_come_whole_and_counted_over_every_wire() {
    let server = start();
    for wire in Spoken::ALL {
        let provider = wire.provider(&server, KEY);
        let turn = answer(&*provider, request("say hello")).await;
        assert_eq!(turn.text, "Hello from outside: grüße, 世界 🌍.", "{wire:?}");
        assert_eq!(turn.stop_reason, StopReason::EndTurn, "{wire:?}");
        // Ollama's numbers are always nothing on this server.
        let counted = if wire == Spoken::Ollama { Usage::default() } else { Usage::plain(1234, 56) };
        assert_eq!(turn.usage, counted, "{wire:?}");
    }
}

#[tokio::test]
async fn one_call_and_its_result_go_there_and_back() {
    let server = start();
    for wire in Spoken::ALL {
        let provider = wire.provider(&server, KEY);
        let asked = request("call one");
        let turn = answer(&*provider, asked.clone()).await;
        assert_eq!(turn.stop_reason, StopReason::ToolUse, "{wire:?}");
        let [call] = turn.tool_calls.as_slice() else { panic!("{wire:?}: {turn:?}") };
        assert_eq!(call.name, "palyra.time.now", "{wire:?}");
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!(arguments, json!({"zone": "utc \"now\" ü"}), "{wire:?}");
        let next = answer(&*provider, after(asked, &turn, &["noon, \"sharp\""])).await;
        assert!(next.text.contains("gave") && next.text.contains("noon"), "{wire:?}: {next:?}");
    }
}

#[tokio::test]
async fn several_calls_keep_their_order_and_find_their_results() {
    let server = start();
    for wire in Spoken::ALL {
        let provider = wire.provider(&server, KEY);
        let asked = request("call several");
        let turn = answer(&*provider, asked.clone()).await;
        assert_eq!(turn.text, "I look at both.", "{wire:?}");
        let calls: Vec<(&str, Value)> = turn
            .tool_calls
            .iter()
            .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
            .collect();
        let wanted = [
            ("palyra.time.now", json!({"zone": "utc"})),
            ("palyra.fs.read", json!({"path": "a.txt"})),
            ("palyra.fs.read", json!({"path": "b.txt"})),
        ];
        assert_eq!(calls, wanted, "{wire:?}");
        let ids: std::collections::BTreeSet<&str> = turn.tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), 3, "{wire:?}: each call has an id of its own");
        let next = answer(&*provider, after(asked, &turn, &["noon", "text of a", "text of b"])).await;
        // The server says back what it read, in its order: results belong to their calls.
        let places: Vec<Option<usize>> =
            ["noon", "text of a", "text of b"].iter().map(|result| next.text.find(result)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{wire:?}: {next:?}");
    }
}

/// The server is strict: over Anthropic's wire it refuses the second turn if the thought does not stand, signed, before the call.
#[tokio::test]
async fn thoughts_are_kept_and_given_back() {
    let server = start();
    for wire in Spoken::ALL {
        let provider = wire.provider(&server, KEY);
        let asked = ModelRequest { effort: Some(ReasoningEffort::Medium), ..request("think") };
        let turn = answer(&*provider, asked.clone()).await;
        assert_eq!(turn.text, "So be it.", "{wire:?}");
        assert_eq!(turn.tool_calls.len(), 1, "{wire:?}: {turn:?}");
        // Ollama itself sends `thinking`; this server spells it in a way of its own, which is passed over.
        if wire != Spoken::Ollama {
            let thought: String = turn.reasoning.iter().map(|block| block.text.as_str()).collect();
            assert_eq!(thought, "First this, then that.", "{wire:?}: {turn:?}");
        }
        let next = answer(&*provider, after(asked, &turn, &["noon"])).await;
        assert!(next.text.contains("noon"), "{wire:?}: {next:?}");
    }
}

#[tokio::test]
async fn what_was_cached_and_thought_is_counted_apart() {
    let server = start();
    for wire in [Spoken::OpenRouter] {
        let turn = answer(&*wire.provider(&server, KEY), request("count the cache")).await;
        assert_eq!((turn.usage.cached_tokens, turn.usage.reasoning_tokens), (1000, 40), "{wire:?}");
        assert_eq!((turn.usage.input_tokens, turn.usage.output_tokens), (1234, 56), "{wire:?}");
    }
}

#[tokio::test]
async fn answers_that_are_cut_or_have_a_shape() {
    let server = start();
    for wire in Spoken::ALL {
        let provider = wire.provider(&server, KEY);
        // This server does not say over Ollama's wire that it was cut.
        if wire != Spoken::Ollama {
            let turn = answer(&*provider, request("too short a bound")).await;
            assert_eq!(turn.stop_reason, StopReason::MaxTokens, "{wire:?}");
        }
        let schema = json!({"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"], "additionalProperties": false});
        let shaped = ModelRequest {
            tools: [].into(),
            output: OutputShape::Json { name: "verdict".to_owned(), schema },
            ..request("give a document")
        };
        let turn = answer(&*provider, shaped).await;
        assert_eq!(serde_json::from_str::<Value>(&turn.text).unwrap(), json!({"verdict": "yes"}), "{wire:?}");
    }
}
