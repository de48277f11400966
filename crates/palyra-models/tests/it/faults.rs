//! Servers that fail, and what the provider makes of it.

use std::time::Duration;

use palyra_common::ToStableError;
use palyra_models::testing::{Fault, Reply};
use palyra_models::{
    ModelErrorClass as Class, ModelErrorSpec, ModelProvider, OpenAiCompatible, OpenAiCompatibleOptions, Turn,
};
use serde_json::json;

use crate::support::{answer, impatient_pair, options, pair, request};

fn failing(class: Class) -> Reply {
    let error = ModelErrorSpec { class, message: "as scripted".to_owned(), retry_after_ms: None };
    Reply::turn(&Turn { error: Some(error), ..Turn::default() }, 0, &[])
}

#[tokio::test]
async fn every_class_is_recognised_and_tried_as_often_as_it_deserves() {
    let tries = |class| match class {
        Class::RateLimit | Class::Transient | Class::Network => 3,
        Class::Timeout => 2,
        _ => 1,
    };
    for class in Class::ALL {
        let make = if *class == Class::Timeout { impatient_pair } else { pair };
        let (server, provider) = make(vec![failing(*class), failing(*class), failing(*class), failing(*class)]);
        let error = answer(&provider).await.unwrap_err();
        assert_eq!(error.class, *class, "{error}");
        assert_eq!(server.requests().len(), tries(*class), "{class}");
        assert!(!error.to_stable().to_string().contains("hunter2"));
    }
}

#[tokio::test]
async fn a_passing_failure_is_overcome() {
    let (server, provider) = pair(vec![
        Reply::status(503, &json!({"error": {"message": "busy"}})),
        Reply::status(429, &json!({"error": {"message": "slow"}})).header("retry-after", "0.01"),
        Reply::text(&["at last"]),
    ]);
    assert_eq!(answer(&provider).await.unwrap().text, "at last");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_long_wait_is_passed_on_with_its_length() {
    let (server, provider) = pair(vec![Reply::status(429, &json!({"error": "slow"})).header("retry-after", "3600")]);
    let error = answer(&provider).await.unwrap_err();
    assert_eq!((error.class, error.retry_after_ms), (Class::RateLimit, Some(3_600_000)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_has_begun_is_never_started_again() {
    for (fault, class) in [(Fault::CloseAfter(400), Class::Network), (Fault::SilentAfter(400), Class::Timeout)] {
        let make = if class == Class::Timeout { impatient_pair } else { pair };
        let (server, provider) = make(vec![Reply::text(&["first", "second"]).fault(fault), Reply::text(&["other"])]);
        let error = answer(&provider).await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert_eq!(server.requests().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_call_cut_in_half_is_an_error_wherever_it_is_cut() {
    let calls = || Reply::calls(vec![palyra_models::Call::new("palyra.fs.read", json!({"path": "a"}))]).without_done();
    let (_server, provider) = pair(vec![calls()]);
    answer(&provider).await.unwrap();
    for bytes in [150, 300, 450, 600] {
        let (_server, provider) = pair(vec![calls().fault(Fault::CloseAfter(bytes)); 3]);
        assert_eq!(answer(&provider).await.unwrap_err().class, Class::Network, "{bytes}");
    }
    // The same without the help of chunk sizes: the body simply ends.
    let begun = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{\"}}]}}]}\n\n";
    let (_server, provider) = pair(vec![Reply::raw(begun)]);
    assert_eq!(answer(&provider).await.unwrap_err().class, Class::Network);
}

#[tokio::test]
async fn nonsense_is_malformed() {
    let table: &[(&str, Reply)] = &[
        ("broken JSON", Reply::raw("data: {\"choices\": [{\"delta\n\n")),
        ("no UTF-8", Reply::raw(b"data: \xff\xfe\n\n".to_vec())),
        ("a broken document", Reply::raw("{\"choices\": [")),
        ("another document", Reply::raw("[1, 2]")),
    ];
    for (name, reply) in table {
        let (_server, provider) = pair(vec![reply.clone()]);
        assert_eq!(answer(&provider).await.unwrap_err().class, Class::Malformed, "{name}");
    }
}

#[tokio::test]
async fn what_is_no_model_server_is_said_to_be_none() {
    let table: &[(&str, Reply)] = &[
        ("a web page", Reply::raw("<html>hello</html>").content_type("text/html")),
        ("`image/png`", Reply::raw(b"\x89PNG".to_vec()).content_type("image/png")),
        ("`text/plain`", Reply::raw("It works!").content_type("text/plain")),
    ];
    for (what, reply) in table {
        let (server, provider) = pair(vec![reply.clone()]);
        let error = answer(&provider).await.unwrap_err();
        let line =
            format!("`{}` is not a model server: it answered with {what}; check the base URL", server.base_url());
        assert_eq!((error.class, error.message), (Class::Permanent, line));
    }
}

#[tokio::test]
async fn an_error_inside_the_stream_is_taken_seriously_and_its_key_masked() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"error\":{\"message\":\"key sk-hunter2 died\",\"code\":\"server_error\"}}\n\n";
    let (server, provider) = pair(vec![Reply::raw(body)]);
    let error = answer(&provider).await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert!(error.message.contains("[redacted]") && !error.message.contains("hunter2"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (server, provider) =
        pair(vec![Reply::status(307, &json!({})).header("location", "http://elsewhere.example/?k=v")]);
    let error = answer(&provider).await.unwrap_err();
    assert_eq!(error.class, Class::Permanent);
    assert!(error.message.contains("elsewhere.example") && !error.message.contains("k=v"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_network_error() {
    let (server, _) = pair(Vec::new());
    let options = OpenAiCompatibleOptions { connect_timeout: Duration::from_millis(500), ..options(&server) };
    drop(server);
    let provider = OpenAiCompatible::new(options).unwrap();
    let error = provider.stream(request()).await.map(|_| ()).unwrap_err();
    assert_eq!(error.class, Class::Network, "{error}");
    assert!(error.message.starts_with("cannot reach the model server at `http://127.0.0.1:"), "{error}");
    assert_eq!(error.to_stable().code, "model_unreachable");
}
