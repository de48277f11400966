//! Several keys: turns, rests, reading anew.

use std::time::Duration;

use palyra_common::RunId;

use super::support::{ONE, Reply, TWO, answer, fail, limited, request, router};
use crate::{ModelErrorClass as Class, ModelRequest, Needs, Standing, Wish};

#[tokio::test]
async fn a_refused_key_gives_way_to_the_next_at_once_and_rests() {
    for class in [Class::Auth, Class::Quota, Class::Permission] {
        let (router, world) = router(TWO);
        world.tell("a one", [fail(class)]);
        let turn = answer(&router, request()).await.unwrap();
        assert_eq!(world.asked(), ["a/m one", "a/m two"], "{class}");
        assert_eq!(turn.attempts.first().unwrap().asked.credential.as_deref(), Some("one"));
        answer(&router, request()).await.unwrap();
        assert_eq!(world.asked(), ["a/m two"], "{class}: the first one rests");
        assert!(world.waits().is_empty());
        world.clock.advance(Duration::from_secs(301));
        answer(&router, request()).await.unwrap();
        assert_eq!(world.asked(), ["a/m one"], "{class}: its rest is over");
        assert!(router.health().is_empty(), "what works is forgotten");
    }
}

#[tokio::test]
async fn a_key_that_may_not_use_one_model_may_use_others() {
    let (router, world) = router(TWO);
    world.tell("a one", [fail(Class::Permission)]);
    answer(&router, request()).await.unwrap();
    answer(&router, ModelRequest { model: "a/other".to_owned(), ..request() }).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m two", "a/other one"]);
}

#[tokio::test]
async fn a_refused_key_is_read_anew_after_its_rest() {
    let (router, world) = router(TWO);
    world.tell("a one", [fail(Class::Auth)]);
    answer(&router, request()).await.unwrap();
    answer(&router, request()).await.unwrap();
    assert_eq!(*world.read.lock().unwrap(), ["env:A_ONE", "env:A_TWO"], "read when first needed, then kept");
    world.clock.advance(Duration::from_secs(61));
    answer(&router, request()).await.unwrap();
    assert_eq!(world.read.lock().unwrap().last().unwrap(), "env:A_ONE");
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_like_one_that_is_refused() {
    let (router, world) = router(TWO);
    world.lose_key("env:A_ONE");
    let turn = answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m two"]);
    let attempt = turn.attempts.first().unwrap();
    assert_eq!(attempt.error.class, Class::Auth);
    assert!(attempt.error.message.contains("the key `one` of `a` cannot be read"), "{}", attempt.error);
}

#[tokio::test]
async fn when_all_keys_are_refused_the_next_of_the_list_is_asked() {
    let (router, world) = router(TWO);
    world.tell("a", [fail(Class::Auth), fail(Class::Auth)]);
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m two", "b/n only"]);
    // Both rest: nobody knocks again while there is somebody else.
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"]);
}

#[tokio::test]
async fn with_nobody_else_a_mended_key_is_found_at_once() {
    let (router, world) = router(ONE);
    world.tell("a", [fail(Class::Auth)]);
    assert_eq!(answer(&router, request()).await.unwrap_err().class, Class::Auth);
    assert_eq!(answer(&router, request()).await.unwrap().text, "fine");
    assert_eq!(world.asked().len(), 2);
    assert!(world.waits().is_empty());
}

#[tokio::test]
async fn limits_move_on_to_another_key_then_to_another_target() {
    let (router, world) = router(TWO);
    world.tell("a one", [limited(60)]);
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m two"]);
    world.tell("a two", [limited(20)]);
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m two", "b/n only"], "the first key rests still");
    world.tell("b", [limited(60)]);
    world.tell("a two", [Reply::Say("waited for")]);
    assert_eq!(answer(&router, request()).await.unwrap().text, "waited for");
    assert_eq!(world.waits(), [20_000], "the one that is ready soonest");
}

#[tokio::test]
async fn a_short_limit_is_waited_for_with_the_model_that_is_wanted_most() {
    let (router, world) = router(&TWO.replace("[[providers.a.keys]]\nname = 'two'\nkey = 'env:A_TWO'\n", ""));
    world.tell("a", [limited(1)]);
    answer(&router, request()).await.unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m one"]);
    assert_eq!(world.waits(), [1000]);
}

#[tokio::test]
async fn runs_take_turns_with_the_keys_and_each_stays_with_its_own() {
    let (router, world) = router(TWO);
    for run in [0_u128, 0, 1, 1, 2] {
        answer(&router, ModelRequest { run_id: RunId::from_u128(run), ..request() }).await.unwrap();
    }
    assert_eq!(world.asked(), ["a/m one", "a/m one", "a/m two", "a/m two", "a/m one"]);
}

#[tokio::test]
async fn what_rests_and_why_is_explained() {
    let (router, world) = router(TWO);
    world.tell("a", [fail(Class::Auth), fail(Class::Auth)]);
    answer(&router, request()).await.unwrap();
    let explained = router.explain(Wish::turn(), &Needs::default()).unwrap();
    let [a, b] = explained.steps.as_slice() else { panic!("{explained:?}") };
    assert_eq!(
        (explained.route.as_str(), a.standing, b.standing),
        ("routes.default", Standing::Rests, Standing::Ready)
    );
    assert_eq!(a.remark, "is cooling down for 60 s more after `auth` (it is auth)");
    assert_eq!(a.keys.len(), 2);
    let needs = Needs { tokens: 5000, ..Needs::default() };
    let explained = router.explain(Wish::turn(), &needs).unwrap();
    assert_eq!(explained.steps.first().unwrap().remark, "its window of 2000 tokens is too small");
    let shown = serde_json::to_string(&(explained, router.health())).unwrap();
    assert!(!shown.contains("secret"), "{shown}");
}
