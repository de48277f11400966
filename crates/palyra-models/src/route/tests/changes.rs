//! One router in the place of another, as when `models.toml` was changed.

use futures::{FutureExt as _, StreamExt as _};

use super::support::{Reply, TWO, answer, fail, request, router, router_in};
use crate::route::RoutePolicy;
use crate::{ModelErrorClass as Class, ModelProvider as _};

/// Who rests, by provider.
fn resting(router: &crate::Router) -> Vec<String> {
    router.health().into_iter().map(|health| health.gate.provider).collect()
}

#[tokio::test]
async fn who_rests_goes_on_resting_unless_its_account_was_changed() {
    let (first, world) = router(TWO);
    world.tell("a one", [fail(Class::Auth)]);
    world.tell("a two", [fail(Class::Auth)]);
    world.tell("b", [fail(Class::Auth)]);
    answer(&first, request()).await.unwrap_err();
    assert_eq!(resting(&first), ["a", "a", "b"]);
    world.read.lock().unwrap().clear();

    // Only the routes are others: everything that is known holds.
    let turned = TWO.replace("['a/m', 'b/n']", "['b/n', 'a/m']");
    let second = router_in(&world, &turned, RoutePolicy::default()).in_place_of(&first);
    assert_eq!(resting(&second), ["a", "a", "b"]);

    let mended = turned.replace("env:B_ONLY", "env:B_OTHER");
    let third = router_in(&world, &mended, RoutePolicy::default()).in_place_of(&second);
    assert_eq!(resting(&third), ["a", "a"], "another key has not failed yet");
    world.asked();
    answer(&third, request()).await.unwrap();
    assert_eq!(world.asked(), ["b/n only"]);
    assert_eq!(*world.read.lock().unwrap(), ["env:B_OTHER"]);

    let without = mended
        .replace("'a/m'", "'b/m'")
        .replace("[providers.a]", "[providers.c]")
        .replace("providers.a.", "providers.c.");
    let last = router_in(&world, &without, RoutePolicy::default()).in_place_of(&third);
    assert_eq!(resting(&last), [""; 0], "nobody asks an account that is gone");
}

#[tokio::test]
async fn keys_and_connections_of_an_unchanged_account_stay() {
    let (first, world) = router(TWO);
    answer(&first, request()).await.unwrap();
    assert_eq!(*world.read.lock().unwrap(), ["env:A_ONE"]);
    let more = TWO.replace("default = ", "low_cost = ['b/n']\ndefault = ");
    let second = router_in(&world, &more, RoutePolicy::default()).in_place_of(&first);
    answer(&second, request()).await.unwrap();
    assert_eq!(*world.read.lock().unwrap(), ["env:A_ONE"], "it is not read again");
    let patient = TWO.replace("context_tokens = 2000", "context_tokens = 2000\ntimeouts = { total_seconds = 5 }");
    let third = router_in(&world, &patient, RoutePolicy::default()).in_place_of(&second);
    answer(&third, request()).await.unwrap();
    assert_eq!(*world.read.lock().unwrap(), ["env:A_ONE", "env:A_ONE"], "another patience is another client");
}

#[tokio::test]
async fn a_call_under_way_ends_as_it_began_and_what_it_finds_out_counts() {
    let (first, world) = router(TWO);
    let live = crate::LiveProvider::new(std::sync::Arc::new(first.clone()));
    // So that the provider is there and the next call reaches it at once.
    answer(&first, request()).await.unwrap();
    world.tell("a", [Reply::Hang]);
    let mut under_way = live.present().unwrap().stream(request()).await.unwrap();
    under_way.next().await.unwrap().unwrap();
    assert!(under_way.next().now_or_never().is_none(), "it hangs");
    let turned = TWO.replace("['a/m', 'b/n']", "['b/n']");
    let second = router_in(&world, &turned, RoutePolicy::default()).in_place_of(&first);
    live.replace(std::sync::Arc::new(second.clone()));
    assert_eq!(live.describe().model, "b/n");
    world.asked();
    drop(under_way);
    world.tell("a", std::iter::repeat_n(fail(Class::Auth), 2));
    world.tell("b", [fail(Class::Auth)]);
    answer(&first, request()).await.unwrap_err();
    assert_eq!(resting(&second), ["a", "a", "b"], "both look at the same breakers");
}
