//! Circuit breakers over many calls, and what cancelling does to them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};

use super::support::{ONE, Reply, TWO, answer, fail, request, router, router_in};
use crate::{
    GateState, ModelError, ModelErrorClass as Class, ModelEvent, ModelProvider as _, ModelRequest, Purpose, RoutePolicy,
};

#[tokio::test]
async fn a_provider_that_keeps_failing_rests_and_one_call_finds_out() {
    let (router, world) = router(TWO);
    world.tell("a", std::iter::repeat_n(fail(Class::Transient), 6));
    for _ in 0..3 {
        answer(&router, request()).await.unwrap();
    }
    let asked = world.asked();
    assert_eq!(asked.iter().filter(|asked| asked.starts_with("a/")).count(), 6, "{asked:?}");
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"]);
    let health = router.health();
    let [a] = health.as_slice() else { panic!("{health:?}") };
    assert_eq!((a.gate.provider.as_str(), a.gate.credential.as_ref(), a.state), ("a", None, GateState::Open));

    world.clock.advance(Duration::from_secs(1));
    assert_eq!(router.health().first().unwrap().state, GateState::HalfOpen, "within a second");
    world.tell("a", [fail(Class::Transient), fail(Class::Transient)]);
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m one", "b/n only"], "two probes, which failed");
    world.clock.advance(Duration::from_secs(1));
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one"], "it works again");
    assert!(router.health().is_empty());
}

fn away() -> Reply {
    Reply::Refuse(ModelError::new(Class::Network, "connection refused").not_sent())
}

#[tokio::test]
async fn a_provider_that_answered_before_is_waited_for() {
    let (router, world) = router(ONE);
    answer(&router, request()).await.unwrap();
    world.asked();
    world.tell("a", std::iter::repeat_n(away(), 100));
    let mut stream = router.stream(request()).await.unwrap();
    let (mut waiting, mut finished) = (0, 0);
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ModelEvent::Waiting(wait) => {
                assert_eq!((wait.asked.provider.as_str(), wait.error.class), ("a", Class::Network));
                waiting += 1;
            }
            ModelEvent::Attempted(attempt) => panic!("nothing was used up: {attempt:?}"),
            ModelEvent::Finished(_) => finished += 1,
            _ => {}
        }
    }
    assert_eq!((finished, world.asked().len()), (1, 101));
    let waits = world.waits();
    assert!(waits.iter().all(|wait| *wait <= 1000), "it is noticed within a second that it is back: {waits:?}");
    let seconds = waits.iter().sum::<u64>() / 1000;
    assert!(waiting > 1 && waiting <= 1 + seconds / 15, "it is said from time to time: {waiting} in {seconds} s");
}

#[tokio::test]
async fn a_provider_that_answered_before_a_restart_is_waited_for_too() {
    let (router, world) = router(ONE);
    answer(&router, request()).await.unwrap();
    world.asked();
    let restarted = router_in(&world, ONE, RoutePolicy::default());
    world.tell("a", std::iter::repeat_n(away(), 100));
    answer(&restarted, request()).await.unwrap();
    assert_eq!(world.asked().len(), 101);
    // What was configured anew has to answer first, whatever its name is.
    let moved = router_in(&world, &ONE.replace("http", "https"), RoutePolicy::default());
    world.tell("a", std::iter::repeat_n(away(), 100));
    answer(&moved, request()).await.unwrap_err();
    assert_eq!(world.asked().len(), 4);
}

#[tokio::test]
async fn the_wait_has_no_end_but_the_deadline_of_whoever_waits() {
    let (router, world) = router(ONE);
    answer(&router, request()).await.unwrap();
    world.tell("a", std::iter::repeat_n(away(), 20_000));
    answer(&router, request()).await.unwrap();
    let hours = world.waits().iter().sum::<u64>() / 3_600_000;
    assert!(hours >= 4, "{hours} h");
}

#[tokio::test]
async fn a_provider_that_never_answered_is_not_waited_for() {
    let (router, world) = router(ONE);
    world.tell("a", std::iter::repeat_n(away(), 100));
    answer(&router, request()).await.unwrap_err();
    assert_eq!(world.asked().len(), 4);
}

#[tokio::test]
async fn what_is_asked_on_the_side_does_not_wait_for_a_provider() {
    let (router, world) = router(ONE);
    answer(&router, request()).await.unwrap();
    world.tell("a", std::iter::repeat_n(away(), 100));
    let aside = ModelRequest { purpose: Purpose::Auxiliary(palyra_common::AuxiliaryTaskKind::Summary), ..request() };
    answer(&router, aside).await.unwrap_err();
    assert_eq!(world.asked().len(), 5);
}

#[tokio::test]
async fn somebody_else_who_is_ready_is_asked_instead_of_waiting() {
    let (router, world) = router(TWO);
    answer(&router, request()).await.unwrap();
    world.asked();
    world.tell("a", std::iter::repeat_n(away(), 100));
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!(turn.answering.unwrap().provider, "b");
    assert_eq!(world.asked(), ["a/m one", "a/m one", "b/n only"]);
}

#[tokio::test]
async fn an_answer_with_nothing_in_it_is_asked_for_elsewhere() {
    let (router, world) = router(TWO);
    world.tell("a", [Reply::Say(" \n")]);
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!((turn.answering.unwrap().provider.as_str(), turn.text.as_str()), ("b", "fine"));
    assert_eq!(turn.attempts.len(), 1);
    // With nobody else to ask, the run decides what an empty answer means.
    let (router, world) = super::support::router(ONE);
    world.tell("a", [Reply::Say("")]);
    assert_eq!(answer(&router, request()).await.unwrap().text, "");
    assert_eq!(world.asked().len(), 1);
}

#[tokio::test]
async fn while_one_call_probes_the_others_go_elsewhere() {
    let (router, world) = router(TWO);
    world.tell("a", std::iter::repeat_n(fail(Class::Transient), 6));
    for _ in 0..3 {
        answer(&router, request()).await.unwrap();
    }
    world.clock.advance(Duration::from_secs(20));
    world.asked();
    world.tell("a", [Reply::Hang]);
    let mut probe = router.stream(request()).await.unwrap();
    assert!(matches!(probe.next().await, Some(Ok(ModelEvent::Answering(_)))));
    assert!(probe.next().now_or_never().is_none(), "it hangs");
    assert_eq!(router.health().first().unwrap().state, GateState::Probing);
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "b/n only"]);
    // Given up without a result: the next one finds out.
    drop(probe);
    assert_eq!(world.open.load(Ordering::SeqCst), 0, "the connection is closed");
    assert_eq!(router.health().first().unwrap().state, GateState::HalfOpen);
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one"]);
}

#[tokio::test]
async fn with_nobody_else_a_rest_is_waited_for() {
    let (router, world) = router(ONE);
    world.tell("a", std::iter::repeat_n(fail(Class::Network), 5));
    answer(&router, request()).await.unwrap_err();
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!(world.asked().len(), 6);
    assert_eq!(turn.attempts.len(), 1);
    assert_eq!(world.waits().last(), Some(&1_000));
}

#[tokio::test]
async fn dropping_a_call_ends_its_wait_and_its_connection() {
    let (router, world) = router(ONE);
    world.stop_time();
    world.tell("a", [fail(Class::Transient)]);
    let mut stream = router.stream(request()).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Answering(_)))));
    assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Attempted(_)))), "told before the wait");
    assert!(stream.next().now_or_never().is_none(), "it waits");
    drop(stream);
    assert_eq!(world.asked().len(), 1);

    world.tell("a", [Reply::Hang]);
    let mut stream = router.stream(request()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    assert!(stream.next().now_or_never().is_none());
    assert_eq!(world.open.load(Ordering::SeqCst), 1);
    drop(stream);
    assert_eq!(world.open.load(Ordering::SeqCst), 0);
}
