//! Circuit breakers over many calls, and what cancelling does to them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};

use super::support::{ONE, Reply, TWO, answer, fail, request, router};
use crate::{GateState, ModelErrorClass as Class, ModelEvent, ModelProvider as _};

#[tokio::test]
async fn a_provider_that_keeps_failing_rests_and_one_call_finds_out() {
    let (router, world) = router(TWO);
    world.tell("a", std::iter::repeat_n(fail(Class::Transient), 6));
    for _ in 0..3 {
        answer(&router, request()).await.unwrap();
    }
    let asked = world.asked();
    assert_eq!(asked.iter().filter(|asked| asked.starts_with("a/")).count(), 5, "{asked:?}");
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"]);
    let health = router.health();
    let [a] = health.as_slice() else { panic!("{health:?}") };
    assert_eq!((a.gate.provider.as_str(), a.gate.credential.as_ref(), a.state), ("a", None, GateState::Open));

    world.clock.advance(Duration::from_secs(16));
    assert_eq!(router.health().first().unwrap().state, GateState::HalfOpen);
    world.waits();
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "b/n only"], "one probe, which failed");
    world.clock.advance(Duration::from_secs(16));
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"], "the second rest is longer");
    world.clock.advance(Duration::from_secs(15));
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one"], "it works again");
    assert!(router.health().is_empty());
}

#[tokio::test]
async fn while_one_call_probes_the_others_go_elsewhere() {
    let (router, world) = router(TWO);
    world.tell("a", std::iter::repeat_n(fail(Class::Transient), 5));
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
    assert_eq!(world.waits().last(), Some(&15_000));
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
