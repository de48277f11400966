//! Chats: at once and in chunks, and how a conversation is found again.

use std::io::{Read as _, Write as _};

use palyra_models::testing::{ModelServer, Reply};
use serde_json::{Value, json};

use super::wire::{asking, chat, documents, post, post_once, runs, unchunked, with};
use crate::support::Place;

/// A daemon whose model is this server.
pub(super) fn place(server: &ModelServer) -> Place {
    Place::new().with("OPENAI_BASE_URL", &server.base_url()).with("OPENAI_API_KEY", "test-key")
}

fn said(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn told(server: &ModelServer) -> Vec<(String, String)> {
    let request = server.requests().into_iter().rfind(|request| request.method == "POST").unwrap();
    request.messages().into_iter().skip(1).map(|message| (message.role.to_string(), message.content)).collect()
}

#[tokio::test]
async fn an_answer_comes_at_once_or_in_chunks() {
    let server = ModelServer::start(vec![Reply::text(&["Hello ", "there."]), Reply::text(&["One", " two"])]).unwrap();
    let place = place(&server);
    let daemon = place.start().await;
    let answer = post(&daemon, "chat/completions", &asking("hi"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], "palyra");
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"], json!({ "role": "assistant", "content": "Hello there.", "refusal": null }));
    assert_eq!(choice["finish_reason"], "stop");
    let usage = |field: &str| answer["usage"][field].as_u64().unwrap();
    assert_eq!(usage("total_tokens"), usage("prompt_tokens") + usage("completion_tokens"));

    let options = json!({ "stream": true, "stream_options": { "include_usage": true } });
    let stream = post(&daemon, "chat/completions", &with(asking("again"), options));
    assert!(stream.head.contains("content-type: text/event-stream"), "{stream:?}");
    let text = unchunked(&stream);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let chunks = documents(&text);
    assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == chunks[0]["id"]));
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let deltas: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(deltas, "One two");
    let reasons: Vec<&str> = chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(reasons, ["stop"]);
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].is_u64() && chunks[0]["usage"].is_null(), "{last}");

    let all = runs(&daemon).await;
    assert_eq!(all.len(), 2);
    assert_ne!(all[0].session_id, all[1].session_id, "two conversations");
    assert_ne!(all[0].workspace, all[1].workspace);
    assert!(all[0].workspace.contains("-workspaces/"), "{}", all[0].workspace);
}

#[tokio::test]
async fn a_client_that_sends_its_history_goes_on_in_its_session() {
    let replies = ["first answer", "second answer", "third answer", "another", "last"];
    let server = ModelServer::start(replies.iter().map(|text| Reply::text(&[*text])).collect()).unwrap();
    let place = place(&server);
    let daemon = place.start().await;
    let mut messages = vec![said("system", "be kind"), said("user", "one")];
    assert_eq!(post(&daemon, "chat/completions", &chat(json!(messages))).status, 200);
    assert!(told(&server)[0].1.ends_with("be kind"), "{:?}", told(&server));
    messages.extend([said("assistant", "first answer"), said("user", "two")]);
    assert_eq!(post(&daemon, "chat/completions", &chat(json!(messages))).status, 200);
    let words = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    let told_then = told(&server);
    assert_eq!(told_then[..2], [words("user", "one"), words("assistant", "first answer")]);
    assert!(told_then[2].1.starts_with("two\n"), "{told_then:?}");

    // The conversation is on the journal, not in memory.
    daemon.kill();
    let daemon = place.start().await;
    messages[0] = said("developer", "be brief");
    messages.extend([said("assistant", "second answer"), said("user", "three")]);
    assert_eq!(post(&daemon, "chat/completions", &chat(json!(messages))).status, 200);
    let all = runs(&daemon).await;
    assert!(all.iter().all(|run| run.session_id == all[0].session_id), "one conversation: {all:#?}");
    assert!(all.iter().all(|run| run.workspace == all[0].workspace));

    // Somebody who goes back to an earlier point, or tells another story, begins a conversation of their own.
    for other in [
        vec![said("user", "one"), said("assistant", "first answer"), said("user", "something else")],
        vec![said("user", "one"), said("assistant", "never said"), said("user", "two")],
    ] {
        assert_eq!(post(&daemon, "chat/completions", &chat(json!(other))).status, 200);
        let newest = runs(&daemon).await.pop().unwrap();
        assert_ne!(newest.session_id, all[0].session_id);
    }
    let told = told(&server);
    assert_eq!(told[0], words("user", "one"));
    assert!(!told[1].1.contains("never said"), "an answer that nobody gave is kept away from the model: {told:?}");
}

#[tokio::test]
async fn the_same_key_is_the_same_run() {
    let server = ModelServer::start(vec![Reply::text(&["once"])]).unwrap();
    let place = place(&server);
    let daemon = place.start().await;
    let first = post_once(&daemon, "k1", "chat/completions", &asking("hi"));
    let second = post_once(&daemon, "k1", "chat/completions", &asking("hi"));
    assert_eq!(first.json()["id"], second.json()["id"]);
    assert_eq!(second.json()["choices"][0]["message"]["content"], "once");
    let other = post_once(&daemon, "k1", "chat/completions", &asking("something else"));
    assert_eq!(other.refusal(), (409, "idempotency_conflict".to_owned()));
    assert_eq!(runs(&daemon).await.len(), 1);

    // Also in the middle of a conversation, where the first answer has moved the session on.
    server.push(Reply::text(&["twice"]));
    let next = chat(json!([said("user", "hi"), said("assistant", "once"), said("user", "more")]));
    let first = post_once(&daemon, "k2", "chat/completions", &next);
    let second = post_once(&daemon, "k2", "chat/completions", &next);
    assert_eq!(first.json()["choices"], second.json()["choices"], "{second:?}");
    let all = runs(&daemon).await;
    assert_eq!((all.len(), all[0].session_id), (2, all[1].session_id));
}

#[tokio::test]
async fn a_run_goes_on_when_its_client_has_gone() {
    let place = Place::new().with_script("[[turn]]\ntext = [\"a\", \"b\", \"c\", \"d\"]\ndelay_ms = 100");
    let daemon = place.start().await;
    let body = with(asking("slowly"), json!({ "stream": true })).to_string();
    let mut stream = std::net::TcpStream::connect(daemon.address()).unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
        daemon.address(),
        daemon.token(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 15]).unwrap();
    drop(stream);
    let run = runs(&daemon).await.pop().unwrap();
    daemon.follow(run.run_id, 1).await;
    assert_eq!(daemon.client.run(run.run_id).await.unwrap().answer.as_deref(), Some("abcd"));
}

#[tokio::test]
async fn the_workspace_is_the_one_that_is_named() {
    let script = "[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.read\"\narguments = { path = \"notes.md\" }\n[[turn]]\ntext = \"read\"";
    let place = Place::new().with_script(script);
    place.write("notes.md", "hello");
    let workspace = place.workspace().display().to_string();
    let place = place.with("PALYRA_OPENAI_WORKSPACE", &workspace);
    let daemon = place.start().await;
    assert_eq!(post(&daemon, "chat/completions", &asking("x")).status, 200);
    let named = with(asking("x"), json!({ "metadata": { "workspace": place.path().join("nowhere") } }));
    let refused = post(&daemon, "chat/completions", &named);
    assert_eq!(refused.refusal().1, "workspace_not_found");
    let relative = with(asking("x"), json!({ "metadata": { "workspace": "here" } }));
    let refused = post(&daemon, "chat/completions", &relative);
    assert_eq!((refused.status, refused.json()["error"]["param"].clone()), (400, json!("metadata.workspace")));
    let all = runs(&daemon).await;
    assert_eq!((all.len(), all[0].tool_calls), (1, 1));
    assert_eq!(std::fs::canonicalize(&all[0].workspace).unwrap(), std::fs::canonicalize(&workspace).unwrap());
}
