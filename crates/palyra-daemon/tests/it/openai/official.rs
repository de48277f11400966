//! OpenAI's own package for Python against the daemon: what it makes of our answers is what its users get.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::client_tools::WEATHER;
use super::wire::runs;
use crate::support::Place;

/// Runs the client and reads the one document that it prints.
fn tour(address: &str, token: &str) -> Value {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/clients");
    let setup = Command::new("bash").arg(clients.join("setup.sh")).arg("openai").output().unwrap();
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    let python = String::from_utf8(setup.stdout).unwrap();
    let output = Command::new(python.trim())
        .arg(clients.join("openai_client.py"))
        .arg(format!("http://{address}/v1"))
        .env("PALYRA_TOKEN", token)
        .env_remove("OPENAI_API_KEY")
        .env("NO_PROXY", "*")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_package_chats_calls_tools_and_understands_errors() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let (address, token) = (daemon.address(), daemon.token());
    let seen = tokio::task::spawn_blocking(move || tour(&address, &token)).await.unwrap();

    assert_eq!(seen["models"], json!(["palyra", "scripted"]));
    assert_eq!(seen["chat"], json!({ "content": "something else", "finish_reason": "stop" }));
    assert_eq!(seen["stream"]["content"], "something else");
    assert_eq!(seen["stream"]["finish_reasons"], json!(["stop"]));
    assert_eq!(seen["stream"]["usage"], true);
    assert_eq!(seen["conversation"], "something else");
    let weather = "Brno: fine in Brno, Graz: fine in Graz.";
    assert_eq!(seen["tools"], json!({ "finish_reason": "tool_calls", "cities": ["Brno", "Graz"], "answer": weather }));
    assert_eq!(seen["streamed_tools"], seen["tools"]);
    assert_eq!(seen["response"]["text"], "something else");
    assert_eq!(seen["response"]["next"], "something else");
    assert_eq!(
        (&seen["response"]["again"], &seen["response"]["status"]),
        (&json!("something else"), &json!("completed"))
    );
    assert_eq!(seen["response_stream"]["text"], "something else");
    assert_eq!(seen["response_stream"]["final"], "something else");
    assert_eq!(seen["response_tools"], json!({ "cities": ["Brno", "Graz"], "answer": weather }));
    let errors = &seen["errors"];
    assert_eq!(errors["wrong_token"], json!({ "kind": "AuthenticationError", "code": "token_refused", "param": null }));
    let unsupported = json!({ "kind": "BadRequestError", "code": "unsupported_parameter", "param": "n" });
    assert_eq!(errors["unsupported"], unsupported);
    assert_eq!(errors["no_model"], json!({ "kind": "NotFoundError", "code": "model_not_found", "param": "model" }));
    let embeddings = json!({ "kind": "InternalServerError", "code": "embeddings_unavailable", "param": null });
    assert_eq!(errors["embeddings"], embeddings);

    let all = runs(&daemon).await;
    // chat and its continuation, stream, two with tools, two responses, one streamed, one with tools: no request was repeated.
    assert_eq!(all.len(), 9, "{all:#?}");
    assert_eq!(all[0].session_id, all[2].session_id, "the conversation went on in its session");
}
