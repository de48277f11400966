//! A run planned by an OpenAI-compatible server: streaming, tool calls, failures, and a server that goes away.

use palyra_common::{RunLifecyclePhase, TerminationReason};
use palyra_models::{Call, Turn};
use palyra_testkit::model_server::{Fault, ModelServer, Reply};
use palyra_testkit::{DaemonOptions, Model};
use serde_json::json;

use super::{finish, names, position, task, workspace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_plans_with_streaming_and_tools() {
    let server = ModelServer::start(vec![
        Reply::calls(vec![Call::new("palyra.fs.read", json!({ "path": "notes.md" }))]),
        Reply::text(&["It says ", "two lines."]),
    ])
    .unwrap();
    let daemon = DaemonOptions::new(Model::Server(server.base_url())).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("what do my notes say?", workspace.path())).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{:?}\n{}", detail.run, daemon.log());
    assert_eq!(detail.answer.as_deref(), Some("It says two lines."));
    let names = names(&events);
    assert!(position(&names, "proposal palyra.fs.read") < position(&names, "result ok"), "{names:#?}");
    assert!(position(&names, "result ok") < position(&names, "token"), "{names:#?}");

    let chats: Vec<_> = server.requests().into_iter().filter(|request| request.method == "POST").collect();
    assert_eq!(chats.len(), 2);
    assert_eq!(chats[0].header("authorization"), Some("Bearer test-key"));
    assert_eq!(chats[0].body["stream"], true);
    let offered: Vec<&str> = chats[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert!(offered.contains(&"palyra__fs__read") && offered.contains(&"palyra__fs__edit"), "{offered:?}");
    let told = chats[1].body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(told["role"], "tool");
    assert!(told["content"].as_str().unwrap().contains("second line"), "{told}");
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_answer_is_asked_for_again_and_a_refusal_ends_the_run() {
    let server = ModelServer::start(vec![
        Reply::text(&["half an ", "answer"]).fault(Fault::CloseAfter(400)),
        Reply::text(&["a whole answer"]),
        Reply::status(401, &json!({ "error": { "message": "bad key", "code": "invalid_api_key" } })),
    ])
    .unwrap();
    let daemon = DaemonOptions::new(Model::Server(server.base_url())).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("say something", workspace.path())).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    assert_eq!(detail.answer.as_deref(), Some("a whole answer"), "{:#?}\n{}", names(&events), daemon.log());

    let run = client.create_run(&task("say more", workspace.path())).await.unwrap();
    let (detail, _) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Failed);
    assert_eq!(detail.run.reason, Some(TerminationReason::ProviderError));
    let code = detail.run.detail.unwrap().code;
    assert!(code.contains("auth"), "{code}");
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_window_is_summarised_and_the_run_goes_on() {
    let read = |turn: u32| Turn {
        text: vec![format!("Part {turn} is noted.")],
        ..Turn::calls(vec![Call::new(
            "palyra.fs.read",
            json!({ "path": "long.md", "offset": turn * 60 + 1, "limit": 60 }),
        )])
    };
    // A summary is asked for at some point and takes the next of these answers; its text will do as one.
    let mut replies: Vec<Reply> = (0..8).map(|turn| Reply::turn(&read(turn), 0, &[])).collect();
    replies.extend((0..3).map(|_| Reply::text(&["read it all"])));
    let server = ModelServer::start(replies).unwrap();
    let options = DaemonOptions::new(Model::Server(server.base_url()));
    let small = options.env("PALYRA_MODEL_CONTEXT_TOKENS", "4096").env("PALYRA_MODEL_MAX_OUTPUT_TOKENS", "512");
    let daemon = small.start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let line = "a line that is long enough to fill a small window quickly\n";
    std::fs::write(workspace.path().join("long.md"), line.repeat(600)).unwrap();
    let run = client.create_run(&task("read long.md", workspace.path())).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    let names = names(&events);
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{:?} {names:#?}\n{}", detail.run, daemon.log());
    assert!(position(&names, "context.compact") < position(&names, "context.compacted"), "{names:#?}");
    daemon.finish().await.unwrap();
}
