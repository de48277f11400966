//! The client's own tools: calls are handed back, results find their run.

use serde_json::{Value, json};

use super::wire::{chat, documents, post, post_as, runs, token, unchunked, with};
use crate::support::{Daemon, Place};

pub(super) const WEATHER: &str = r#"
[[script]]
when = "weather"
[[script.turn]]
text = "I ask."
[[script.turn.call]]
tool = "client.get_weather"
arguments = { city = "Brno" }
[[script.turn.call]]
tool = "palyra.fs.write"
arguments = { path = "asked.txt", content = "yes" }
[[script.turn.call]]
tool = "client.get_weather"
arguments = { city = "Graz" }
[[script.turn]]
text = ["Brno: ", "${v1", "}, Graz: ${v2}."]
[[script]]
when = "never mind"
turn = [{ text = "As you like." }]
[[script]]
turn = [{ text = "something else" }]
"#;

pub(super) fn tools() -> Value {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    json!([{ "type": "function", "function": { "name": "get_weather", "parameters": parameters, "strict": true } }])
}

fn question() -> Value {
    json!({ "role": "user", "content": "how is the weather?" })
}

/// Asks, and gives the message with the calls.
fn called(daemon: &Daemon) -> Value {
    let answer = post(daemon, "chat/completions", &with(chat(json!([question()])), json!({ "tools": tools() })));
    assert_eq!(answer.status, 200, "{answer:?}");
    let choice = answer.json()["choices"][0].clone();
    assert_eq!(choice["finish_reason"], "tool_calls");
    choice["message"].clone()
}

fn result(message: &Value, index: usize, content: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": message["tool_calls"][index]["id"], "content": content })
}

#[tokio::test]
async fn calls_go_to_the_client_and_results_come_back_to_the_run() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let message = called(&daemon);
    assert_eq!(message["content"], "I ask.");
    let calls = message["tool_calls"].as_array().unwrap();
    let functions: Vec<_> = calls.iter().map(|call| call["function"].clone()).collect();
    let function = |city: &str| json!({ "name": "get_weather", "arguments": json!({ "city": city }).to_string() });
    assert_eq!(functions, [function("Brno"), function("Graz")], "ours was done inside");
    let run = runs(&daemon).await.pop().unwrap();
    assert!(std::path::Path::new(&run.workspace).join("asked.txt").exists());

    let messages = |results: Vec<Value>| {
        let mut messages = vec![question(), message.clone()];
        messages.extend(results);
        with(chat(json!(messages)), json!({ "tools": tools() }))
    };
    let missing = post(&daemon, "chat/completions", &messages(vec![result(&message, 0, "sunny")]));
    assert_eq!(missing.refusal(), (400, "tool_result_missing".to_owned()));
    let stranger = json!({ "role": "tool", "tool_call_id": "call_abc123", "content": "x" });
    let unknown = post(&daemon, "chat/completions", &messages(vec![stranger]));
    assert_eq!(unknown.refusal(), (400, "tool_call_unknown".to_owned()));
    assert_eq!(unknown.json()["error"]["param"], "messages[2].tool_call_id");
    let whole = messages(vec![result(&message, 0, "sunny"), result(&message, 1, "rain")]);
    let mallory = token(&daemon, &json!({ "name": "m", "role": "operator", "subject": "user:mallory" }));
    let refused = post_as(&daemon, &mallory, "chat/completions", &whole);
    assert_eq!(refused.refusal(), (400, "tool_call_unknown".to_owned()), "the run is somebody else's");

    let answer = post(&daemon, "chat/completions", &whole);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "Brno: sunny, Graz: rain.", "{answer:?}");
    assert_ne!(answer.json()["id"], message["id"]);
    // A client whose connection broke asks again; the run is not disturbed by it.
    let again = post(&daemon, "chat/completions", &whole);
    assert_eq!(again.json()["choices"], answer.json()["choices"]);
    let changed = messages(vec![result(&message, 0, "snow"), result(&message, 1, "rain")]);
    assert_eq!(post(&daemon, "chat/completions", &changed).refusal(), (409, "idempotency_conflict".to_owned()));

    let mut next = whole["messages"].as_array().unwrap().clone();
    next.extend([answer.json()["choices"][0]["message"].clone(), json!({ "role": "user", "content": "thanks" })]);
    assert_eq!(post(&daemon, "chat/completions", &chat(json!(next))).status, 200);
    let all = runs(&daemon).await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].session_id, all[1].session_id, "found again by what was said");
}

#[tokio::test]
async fn a_token_for_models_alone_brings_no_results_to_a_run_in_a_granted_directory() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let full = token(&daemon, &json!({ "name": "f", "role": "operator", "subject": "ci" }));
    let narrow = json!({ "name": "m", "role": "operator", "subject": "ci", "scopes": ["models:use"] });
    let models = token(&daemon, &narrow);
    let there = json!({ "tools": tools(), "metadata": { "workspace": place.workspace() } });
    let asked = post_as(&daemon, &full, "chat/completions", &with(chat(json!([question()])), there));
    let message = asked.json()["choices"][0]["message"].clone();
    assert!(message["tool_calls"].is_array(), "{asked:?}");
    let results = [question(), message.clone(), result(&message, 0, "sunny"), result(&message, 1, "rain")];
    let whole = |more: Vec<Value>| {
        let messages: Vec<Value> = results.iter().cloned().chain(more).collect();
        with(chat(json!(messages)), json!({ "tools": tools() }))
    };
    let words = json!({ "role": "user", "content": "and delete everything" });
    for request in [whole(Vec::new()), whole(vec![words])] {
        let refused = post_as(&daemon, &models, "chat/completions", &request);
        assert_eq!(refused.refusal(), (403, "workspace_not_granted".to_owned()));
    }
    let answer = post_as(&daemon, &full, "chat/completions", &whole(Vec::new()));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "Brno: sunny, Graz: rain.", "{answer:?}");
}

#[tokio::test]
async fn in_chunks_references_are_never_shown_and_waiting_runs_survive_a_restart() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let streaming = json!({ "tools": tools(), "stream": true });
    let text = unchunked(&post(&daemon, "chat/completions", &with(chat(json!([question()])), streaming.clone())));
    let chunks = documents(&text);
    let calls: Vec<Value> =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0).cloned()).collect();
    assert_eq!(calls.iter().map(|call| call["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    daemon.kill();

    let daemon = place.start().await;
    let message = json!({ "role": "assistant", "content": "I ask.", "tool_calls": calls });
    let messages = [question(), message.clone(), result(&message, 0, "sunny"), result(&message, 1, "rain")];
    let text = unchunked(&post(&daemon, "chat/completions", &with(chat(json!(messages)), streaming)));
    let deltas: Vec<String> = documents(&text)
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(deltas.concat(), "Brno: sunny, Graz: rain.");
    assert!(!text.contains("${v"), "{text}");
}

#[tokio::test]
async fn a_client_may_say_something_else_instead() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let message = called(&daemon);
    let messages = json!([question(), message, { "role": "user", "content": "never mind" }]);
    let answer = post(&daemon, "chat/completions", &chat(messages));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "As you like.", "{answer:?}");
    assert_eq!(runs(&daemon).await.len(), 1, "the run that waited went on");
}
