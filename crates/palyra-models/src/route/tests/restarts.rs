//! Answers that break off after part of them was passed on.

use futures::StreamExt as _;

use super::support::{ONE, Reply, TWO, answer, fail, request, router, router_with};
use crate::{AfterOutput, ModelError, ModelErrorClass as Class, ModelEvent, ModelProvider as _, RoutePolicy, Usage};

fn broken(said: &'static str) -> Reply {
    Reply::Break(said, ModelError::new(Class::Network, "reset"))
}

#[tokio::test]
async fn a_turn_is_started_over_and_what_was_said_is_taken_back() {
    let (router, world) = router(ONE);
    world.tell("a", [broken("half an ans"), Reply::Say("a whole answer")]);
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!(turn.text, "a whole answer");
    assert_eq!(turn.usage, Usage::plain(10, 1), "only the last try makes the turn");
    assert_eq!(turn.attempts.first().unwrap().usage, Some(Usage::plain(10, 7)), "what was spent in vain is known");

    world.tell("a", [broken("half"), Reply::Say("whole")]);
    let events: Vec<_> = router.stream(request()).await.unwrap().map(Result::unwrap).collect().await;
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::TextDelta(text) => Some(text.as_str()),
            ModelEvent::Attempted(_) => Some("<taken back>"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["half", "<taken back>", "whole"]);
}

#[tokio::test]
async fn it_is_not_started_over_for_ever() {
    let (router, world) = router(ONE);
    world.tell("a", std::iter::repeat_n(broken("half"), 9));
    let error = answer(&router, request()).await.unwrap_err();
    assert_eq!(error.class, Class::Network);
    assert_eq!(world.asked().len(), 3);
}

#[tokio::test]
async fn whoever_cannot_take_back_gets_the_error() {
    let policy = RoutePolicy { after_output: AfterOutput::GiveUp, ..RoutePolicy::default() };
    let (router, world) = router_with(TWO, policy);
    world.tell("a", [broken("half")]);
    assert_eq!(answer(&router, request()).await.unwrap_err().message, "reset");
    assert_eq!(world.asked(), ["a/m one"]);
    // Nothing had been said yet: that is still tried again.
    world.tell("a", [fail(Class::Network)]);
    answer(&router, request()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_always_breaks_off_gives_way_in_each_call_and_is_known_to_fail() {
    let (router, world) = router(TWO);
    world.tell("a", std::iter::repeat_n(broken("half"), 9));
    for _ in 0..4 {
        answer(&router, request()).await.unwrap();
    }
    let asked = world.asked().iter().filter(|asked| asked.starts_with("a/")).count();
    assert_eq!(asked, 8, "two tries of each call");
    let health = router.health();
    let a = health.first().unwrap();
    assert_eq!((a.gate.provider.as_str(), a.last.as_ref().map(|error| error.class)), ("a", Some(Class::Network)));
}
