//! What is refused, in OpenAI's shape; and that nothing anybody sends is an error of ours.

use palyra_models::testing::{ModelServer, Reply};
use serde_json::{Map, Value, json};

use super::chat::place;
use super::wire::{asking, post, post_as, post_with, token, unchunked, with};
use crate::raw::{Answer, loopback, loopback_json};
use crate::support::{Daemon, Place};

fn get(daemon: &Daemon, path: &str) -> Answer {
    let (address, token) = (daemon.address(), format!("Bearer {}", daemon.token()));
    loopback(daemon, &format!("GET /v1/{path}"), &[("Host", &address), ("Authorization", &token)])
}

/// The error has OpenAI's four fields and nothing else.
fn shape(answer: &Answer) -> (u16, String, String) {
    let error = answer.json()["error"].clone();
    let fields = error.as_object().unwrap_or_else(|| panic!("{answer:?}"));
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["code", "message", "param", "type"], "{answer:?}");
    (answer.status, error["type"].as_str().unwrap().to_owned(), error["code"].as_str().unwrap().to_owned())
}

fn refusal(status: u16, kind: &str, code: &str) -> (u16, String, String) {
    (status, kind.to_owned(), code.to_owned())
}

#[tokio::test]
async fn only_those_who_may_use_models_get_in() {
    let place = Place::new();
    let daemon = place.start().await;
    let body = asking("list the files").to_string();
    let nobody = post_with(&daemon, &[], "chat/completions", body.as_bytes());
    assert_eq!(shape(&nobody), refusal(401, "authentication_error", "token_refused"));
    assert!(nobody.head.contains("www-authenticate: bearer"), "{nobody:?}");
    let wrong = post_with(&daemon, &[("Authorization", "Bearer sk-nonsense")], "chat/completions", body.as_bytes());
    assert_eq!(shape(&wrong).0, 401);

    let viewer = token(&daemon, &json!({ "name": "v", "role": "viewer" }));
    let elsewhere = token(&daemon, &json!({ "name": "r", "role": "operator", "scopes": ["runs:read", "runs:write"] }));
    for secret in [viewer, elsewhere] {
        for path in ["chat/completions", "responses", "embeddings"] {
            let refused = post_as(&daemon, &secret, path, &asking("x"));
            assert_eq!(shape(&refused), refusal(403, "permission_error", "command_denied"), "{path}");
        }
    }
    let models = token(&daemon, &json!({ "name": "m", "role": "operator", "scopes": ["models:use"] }));
    assert_eq!(post_as(&daemon, &models, "chat/completions", &asking("list the files")).status, 200);
    let address = daemon.address();
    let runs =
        loopback(&daemon, "GET /api/v1/runs", &[("Host", &address), ("Authorization", &format!("Bearer {models}"))]);
    assert_eq!(runs.status, 403, "the scope is good for this interface alone: {runs:?}");
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let place = Place::new();
    let daemon = place.start().await;
    let refused = post(&daemon, "chat/completions", &with(asking("x"), json!({ "n": 2 })));
    assert_eq!(shape(&refused), refusal(400, "invalid_request_error", "unsupported_parameter"));
    assert_eq!(refused.json()["error"]["param"], "n");
    let refused = post(&daemon, "chat/completions", &with(asking("x"), json!({ "model": "gpt-4o" })));
    assert_eq!(shape(&refused), refusal(404, "invalid_request_error", "model_not_found"));
    let bad_tool = json!({ "tools": [{ "type": "function", "function": { "name": "no such name" } }] });
    let refused = post(&daemon, "chat/completions", &with(asking("x"), bad_tool));
    assert_eq!(shape(&refused), refusal(400, "invalid_request_error", "client_tool_invalid"));
    assert_eq!(shape(&get(&daemon, "files")), refusal(404, "invalid_request_error", "route_not_found"));
    for (path, advice) in [
        ("v1/models", "end with one `/v1`"),
        ("messages", "Anthropic's interface is not offered"),
        ("completions", "use `/v1/chat/completions`"),
    ] {
        let answer = get(&daemon, path).json();
        assert!(answer["error"]["message"].as_str().unwrap().contains(advice), "{answer}");
    }
    let outside = loopback_json(&daemon, "GET /models", Some(&daemon.token()), "").json();
    assert!(outside["error"]["message"].as_str().unwrap().contains("is below `/v1`"), "{outside}");
    assert_eq!(shape(&get(&daemon, "chat/completions")), refusal(405, "invalid_request_error", "method_not_allowed"));
    let token = format!("Bearer {}", daemon.token());
    let large = vec![b' '; 9 * 1024 * 1024];
    let refused = post_with(&daemon, &[("Authorization", &token)], "responses", &large);
    assert_eq!(shape(&refused), refusal(413, "invalid_request_error", "body_too_large"));

    assert_eq!(get(&daemon, "models").json()["data"][0]["id"], "palyra");
    assert_eq!(get(&daemon, "models/palyra").json()["object"], "model");
    assert_eq!(shape(&get(&daemon, "models/org/other")).2, "model_not_found");
    assert_eq!(shape(&get(&daemon, "models/%ff")).0, 404);
    let embedding = json!({ "model": "m", "input": "x" });
    let refused = post(&daemon, "embeddings", &embedding);
    assert_eq!(shape(&refused), refusal(501, "server_error", "embeddings_unavailable"));
}

#[tokio::test]
async fn embeddings_come_from_the_provider() {
    let server = ModelServer::start(Vec::new()).unwrap();
    let place = place(&server);
    let daemon = place.start().await;
    let request = json!({ "model": "e", "input": ["ab", "cde"], "dimensions": 3 });
    let answer = post(&daemon, "embeddings", &request).json();
    let vectors: Vec<&Value> = answer["data"].as_array().unwrap().iter().map(|entry| &entry["embedding"]).collect();
    assert_eq!(vectors, [&json!([2.0, 0.0, 0.5]), &json!([3.0, 1.0, 0.5])]);
    assert_eq!(answer["usage"], json!({ "prompt_tokens": 2, "total_tokens": 2 }));
    let sent = server.requests().pop().unwrap();
    assert_eq!((sent.path.as_str(), &sent.body["dimensions"]), ("/v1/embeddings", &json!(3)));
    let report = crate::raw::unix(&daemon, "GET /api/v1/usage", b"").json();
    assert!(report.to_string().contains(r#""input":2"#), "the call is in the books: {report}");
}

#[tokio::test]
async fn a_model_that_fails_is_told_and_not_tried_again() {
    let failing = || Reply::status(401, &json!({ "error": { "message": "bad key" } }));
    let server = ModelServer::start(vec![failing(), failing()]).unwrap();
    let place = place(&server);
    let daemon = place.start().await;
    let refused = post(&daemon, "chat/completions", &asking("x"));
    assert_eq!(shape(&refused), refusal(502, "server_error", "run_without_answer"));
    assert!(refused.head.contains("x-should-retry: false"), "{refused:?}");
    let stream = unchunked(&post(&daemon, "chat/completions", &with(asking("x"), json!({ "stream": true }))));
    assert!(!stream.contains("[DONE]") && stream.contains("\"error\""), "{stream}");
}

/// Numbers from a seed, so that a failing trial can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn value(&mut self, depth: usize) -> Value {
        const WORDS: &[&str] = &[
            "",
            "user",
            "assistant",
            "tool",
            "system",
            "palyra",
            "text",
            "function",
            "call_x_y",
            "resp_",
            "\u{0}",
            "ä",
        ];
        const NAMES: &[&str] = &[
            "role",
            "content",
            "type",
            "text",
            "tool_calls",
            "id",
            "function",
            "name",
            "parameters",
            "tool_call_id",
            "messages",
            "input",
            "model",
            "stream",
            "tools",
            "metadata",
            "workspace",
            "call_id",
            "output",
            "stop",
        ];
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(1000) as i64 - 500),
            3 => json!(1e300),
            4 => json!(self.pick(WORDS)),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let count = self.below(5);
                Value::Object(
                    (0..count).map(|_| (self.pick(NAMES).to_owned(), self.value(depth - 1))).collect::<Map<_, _>>(),
                )
            }
        }
    }
}

#[tokio::test]
async fn nothing_that_is_sent_is_an_error_of_ours() {
    let place = Place::new().with_script("[[turn]]\ntext = \"x\"");
    let daemon = place.start().await;
    let good = [
        ("chat/completions", with(asking("x"), json!({ "tools": [], "stop": null, "metadata": {} }))),
        ("responses", json!({ "model": "palyra", "input": [{ "role": "user", "content": "x" }], "text": {} })),
        ("embeddings", json!({ "model": "m", "input": ["x"] })),
    ];
    let mut random = Random(7);
    for trial in 0..400 {
        let (path, request) = &good[trial % good.len()];
        let mut request = request.clone();
        if random.below(4) == 0 {
            request = random.value(4);
        } else {
            // One part of a good request is something else.
            let fields = request.as_object_mut().unwrap();
            let name = fields.keys().nth(random.below(fields.len())).unwrap().clone();
            let value = random.value(4);
            match fields[&name].get_mut(0) {
                Some(inner) if random.below(2) == 0 => *inner = value,
                _ => fields[&name] = value,
            }
        }
        let answer = post(&daemon, path, &request);
        let fine = answer.status == 200 || (400..500).contains(&answer.status) || answer.status == 501;
        assert!(fine, "trial {trial}: {path} {request}\n{answer:?}");
        if answer.status != 200 {
            shape(&answer);
        }
    }
}
