//! Answers that arrive, in whatever form.

use futures::StreamExt;
use palyra_models::testing::{Delivery, Fault, LineEnding, ModelServer, Reply};
use palyra_models::{
    Answering, Call, ModelErrorClass, ModelEvent, ModelProvider, OpenAiCompatible, StopReason, Turn, Usage,
};
use serde_json::json;

use crate::support::{answer, options, pair, request};

fn call() -> Vec<Call> {
    vec![Call::new("palyra.fs.read", json!({"path": "grüße.txt"})), Call::new("palyra.fs.list", json!({}))]
}

#[tokio::test]
async fn text_and_calls_come_through_every_delivery() {
    let whole = Turn {
        text: vec!["Hel".to_owned(), "lo 🦀".to_owned()],
        calls: call(),
        usage: Some(Usage::plain(11, 5)),
        ..Turn::default()
    };
    let reply = || Reply::turn(&whole, 0, &[]);
    let replies = vec![
        reply(),
        reply().delivery(Delivery::Whole),
        reply().delivery(Delivery::ByteByByte),
        reply().delivery(Delivery::ByteByByte).line_ending(LineEnding::CrLf),
        reply().line_ending(LineEnding::CrLf),
        reply().without_done(),
        reply().without_finish_reason(),
        reply().content_type("text/plain"),
        reply().as_document(),
        reply().as_document().content_type("text/event-stream").delivery(Delivery::ByteByByte),
    ];
    let count = replies.len();
    let (server, provider) = pair(replies);
    for number in 0..count {
        let turn = answer(&provider).await.unwrap();
        assert_eq!(turn.text, "Hello 🦀", "reply {number}");
        assert_eq!(turn.usage, Usage::plain(11, 5), "reply {number}");
        assert_eq!(turn.stop_reason, StopReason::ToolUse, "reply {number}");
        let calls: Vec<_> = turn.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("palyra.fs.read", r#"{"path":"grüße.txt"}"#), ("palyra.fs.list", "{}")], "reply {number}");
    }
    assert_eq!(server.requests().len(), count);
}

#[tokio::test]
async fn the_request_is_what_servers_expect() {
    let (server, provider) = pair(vec![Reply::text(&["hi"])]);
    answer(&provider).await.unwrap();
    let requests = server.requests();
    let sent = &requests[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("authorization"), Some("Bearer sk-hunter2"));
    assert_eq!(sent.header("accept"), Some("text/event-stream"));
    assert!(sent.header("user-agent").unwrap().starts_with("palyra/"));
    assert_eq!(sent.body["model"], "m");
    assert_eq!(sent.body["max_tokens"], 100);
    assert_eq!(sent.body["stream_options"], json!({"include_usage": true}));
    assert_eq!(sent.body["tools"][0]["function"]["name"], "palyra__fs__read");
    assert_eq!(sent.body["messages"][1], json!({"role": "user", "content": "read a.txt"}));
}

#[tokio::test]
async fn without_a_model_the_server_is_asked_once() {
    let server = ModelServer::start(vec![Reply::text(&["a"]), Reply::text(&["b"])]).unwrap();
    server.offer_models(&["first", "second"]);
    let provider =
        OpenAiCompatible::new(palyra_models::OpenAiCompatibleOptions { model: None, ..options(&server) }).unwrap();
    assert_eq!(provider.describe().model, "");
    answer(&provider).await.unwrap();
    answer(&provider).await.unwrap();
    assert_eq!(provider.describe().model, "first");
    let requests = server.requests();
    let paths: Vec<_> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/models", "/v1/chat/completions", "/v1/chat/completions"]);
    assert_eq!(requests[1].body["model"], "first");

    let empty = ModelServer::start(Vec::new()).unwrap();
    empty.offer_models(&[]);
    let provider =
        OpenAiCompatible::new(palyra_models::OpenAiCompatibleOptions { model: None, ..options(&empty) }).unwrap();
    assert!(answer(&provider).await.unwrap_err().message.contains("offers no model"));
}

#[tokio::test]
async fn a_server_that_refuses_optional_fields_is_understood_and_remembered() {
    let refuse = |message: &str| Reply::status(400, &json!({"error": {"message": message}}));
    let (server, provider) = pair(vec![
        refuse("unknown field `stream_options`"),
        refuse("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        Reply::text(&["one"]),
        Reply::text(&["two"]),
    ]);
    assert_eq!(answer(&provider).await.unwrap().text, "one");
    assert_eq!(answer(&provider).await.unwrap().text, "two");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    for later in &requests[2..] {
        assert!(later.body.get("stream_options").is_none() && later.body.get("max_tokens").is_none());
        assert_eq!(later.body["max_completion_tokens"], 100);
    }
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    let (server, provider) = pair(vec![Reply::text(&["first", "second"]).fault(Fault::SilentAfter(400))]);
    let mut stream = provider.stream(request()).await.unwrap();
    let answering = Answering { provider: "openai_compatible".into(), model: "m".into(), credential: None };
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::Answering(answering));
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::TextDelta("first".to_owned()));
    drop(stream);
    drop(provider);
    let gone = tokio::task::spawn_blocking(move || {
        // The server notices by itself; the bound only keeps a defect from hanging the test.
        (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            server.abandoned() == 1
        })
    });
    assert!(gone.await.unwrap());
}

#[tokio::test]
async fn a_silent_end_after_the_stop_is_an_end() {
    let stop = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (_server, provider) = pair(vec![Reply::raw(format!("{stop}{stop}")).fault(Fault::CloseAfter(stop.len()))]);
    let turn = answer(&provider).await.unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason), ("x", StopReason::EndTurn));
    let (_server, provider) = pair(vec![Reply::raw("data: [DONE]\n\n")]);
    assert_eq!(answer(&provider).await.unwrap_err().class, ModelErrorClass::Malformed);
}
