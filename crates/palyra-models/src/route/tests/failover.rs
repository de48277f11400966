//! Trying again, and going on to the next.

use futures::StreamExt as _;

use super::support::{ONE, Reply, TWO, answer, fail, limited, request, router};
use crate::{
    Message, ModelError, ModelErrorClass as Class, ModelEvent, ModelProvider as _, ModelRequest, OutputShape, Part,
    PartKind, ToolSpec,
};

#[tokio::test]
async fn who_answers_is_said_once_and_first() {
    let (router, _) = router(ONE);
    let events: Vec<_> = router.stream(request()).await.unwrap().map(Result::unwrap).collect().await;
    let answering: Vec<usize> = events
        .iter()
        .enumerate()
        .filter_map(|(at, event)| matches!(event, ModelEvent::Answering(_)).then_some(at))
        .collect();
    assert_eq!(answering, [0]);
    assert!(matches!(events.last(), Some(ModelEvent::Finished(_))));
    assert_eq!(router.name(), "router");
}

#[tokio::test]
async fn what_may_go_away_is_tried_again_with_growing_waits() {
    let (router, world) = router(ONE);
    world.tell("a", [fail(Class::Transient), fail(Class::Network), fail(Class::Transient), Reply::Say("at last")]);
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!((turn.text.as_str(), turn.attempts.len()), ("at last", 3));
    assert_eq!(world.waits(), [1000, 2000, 4000]);
    let told: Vec<u64> = turn.attempts.iter().map(|attempt| attempt.wait_ms).collect();
    assert_eq!(told, [1000, 2000, 4000], "every wait is told beforehand");
    assert_eq!(turn.answering.unwrap().provider, "a");
}

#[tokio::test]
async fn tries_end_and_the_last_error_says_what_was_tried() {
    let (router, world) = router(ONE);
    world.tell("a", std::iter::repeat_n(fail(Class::Transient), 9));
    let error = answer(&router, request()).await.unwrap_err();
    assert_eq!(world.asked().len(), 4);
    assert_eq!(error.message, "it is transient (tried: a/m: transient, 4 times)");
    let (router, world) = super::support::router(ONE);
    world.tell("a", [fail(Class::Timeout), fail(Class::Timeout)]);
    assert_eq!(answer(&router, request()).await.unwrap_err().class, Class::Timeout);
    assert_eq!(world.asked().len(), 2, "a time-out has cost its whole wait already");
}

#[tokio::test]
async fn after_a_second_failure_the_next_of_the_list_is_asked() {
    let (router, world) = router(TWO);
    world.tell("a", [fail(Class::Transient), fail(Class::Transient)]);
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m one", "b/n only"], "another key does not mend a server");
    assert_eq!(turn.answering.unwrap().provider, "b");
    assert_eq!(world.waits(), [1000]);
}

#[tokio::test]
async fn when_all_have_failed_the_rest_of_the_tries_is_used() {
    let (router, world) = router(TWO);
    world.tell("a", [fail(Class::Transient), fail(Class::Transient)]);
    world.tell("b", [fail(Class::Transient), fail(Class::Transient), Reply::Say("never asked for this")]);
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m one", "b/n only", "b/n only", "a/m one"]);
    assert_eq!((turn.text.as_str(), turn.attempts.len()), ("fine", 4));
}

#[tokio::test]
async fn what_is_refused_for_good_is_not_taken_elsewhere() {
    let bad_request = Reply::Refuse(ModelError::new(Class::Permanent, "bad request").status(400));
    for (reply, class) in [(bad_request, Class::Permanent), (fail(Class::ContentPolicy), Class::ContentPolicy)] {
        let (router, world) = router(TWO);
        world.tell("a", [reply]);
        assert_eq!(answer(&router, request()).await.unwrap_err().class, class);
        assert_eq!(world.asked(), ["a/m one"]);
    }
    let (router, world) = router(TWO);
    world.tell("a", [Reply::Refuse(ModelError::new(Class::Permanent, "no such model").status(404))]);
    assert_eq!(answer(&router, request()).await.unwrap().answering.unwrap().provider, "b");
    assert_eq!(world.asked(), ["a/m one", "b/n only"]);
}

#[tokio::test]
async fn what_is_too_long_goes_to_a_larger_window_only() {
    let (router, world) = router(TWO);
    world.tell("a", [fail(Class::ContextTooLong)]);
    assert_eq!(answer(&router, request()).await.unwrap().answering.unwrap().provider, "b");
    world.tell("b", [fail(Class::ContextTooLong)]);
    let to_b = ModelRequest { model: "b/n".to_owned(), ..request() };
    assert_eq!(answer(&router, to_b).await.unwrap_err().class, Class::ContextTooLong);
    assert_eq!(world.asked(), ["a/m one", "b/n only", "b/n only"]);
    // 3000 tokens do not fit into 2000; nobody is asked in vain.
    let long = ModelRequest { messages: vec![Message::user("word ".repeat(2400))].into(), ..request() };
    answer(&router, long).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"]);
    let endless = ModelRequest { messages: vec![Message::user("word ".repeat(24_000))].into(), ..request() };
    answer(&router, endless).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"], "if it fits nowhere the largest decides");
}

#[tokio::test]
async fn a_model_that_cannot_do_it_is_not_asked() {
    let (router, world) =
        router(&TWO.replace("context_tokens = 2000", "context_tokens = 2000\ncapabilities = ['structured_output']"));
    let image = Part { kind: PartKind::Image, media_type: "image/png".into(), name: None, data: "AA==".into() };
    let seeing =
        ModelRequest { messages: vec![Message::user("what is it?").with_parts(vec![image])].into(), ..request() };
    answer(&router, seeing.clone()).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"]);
    let tool = ToolSpec { name: "t".into(), description: String::new(), input_schema: serde_json::json!({}).into() };
    answer(&router, ModelRequest { tools: [tool].into(), ..request() }).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"]);
    let shaped = OutputShape::Json { name: "x".into(), schema: serde_json::json!({}) };
    answer(&router, ModelRequest { output: shaped, ..request() }).await.unwrap();
    assert_eq!(world.asked(), ["a/m one"]);

    let (router, world) = super::support::router(ONE);
    let error = answer(&router, seeing).await.unwrap_err();
    assert!(error.message.contains("`a/m` lacks images; add one that can"), "{error}");
    assert!(world.asked().is_empty());
}

#[tokio::test]
async fn a_server_may_say_how_long_within_reason() {
    let (router, world) = router(ONE);
    world.tell("a", [limited(3), Reply::Say("now")]);
    assert_eq!(answer(&router, request()).await.unwrap().text, "now");
    assert_eq!(world.waits(), [3000]);
    world.tell("a", [limited(7200)]);
    let error = answer(&router, request()).await.unwrap_err();
    assert_eq!((error.class, error.retry_after_ms), (Class::RateLimit, Some(7_200_000)));
    assert_eq!(world.waits(), [0_u64; 0]);
    // Until then it is left alone, and the refusal says how long.
    world.asked();
    let error = answer(&router, request()).await.unwrap_err();
    assert_eq!((error.class, error.retry_after_ms), (Class::RateLimit, Some(3_600_000)));
    assert!(error.message.contains("`a/m` is cooling down for 3600 s more after `rate_limit` (slow down)"), "{error}");
    assert!(world.asked().is_empty());
}

#[tokio::test]
async fn a_model_asked_for_by_name_is_asked_first() {
    let (router, world) = router(TWO);
    answer(&router, ModelRequest { model: "n".to_owned(), ..request() }).await.unwrap();
    answer(&router, ModelRequest { model: "a/other".to_owned(), ..request() }).await.unwrap();
    assert_eq!(world.asked(), ["b/n only", "a/other one"]);
    let error = answer(&router, ModelRequest { model: "zzz".to_owned(), ..request() }).await.unwrap_err();
    assert_eq!(error.status, Some(404));
}
