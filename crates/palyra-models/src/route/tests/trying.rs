//! Trying models out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::support::{In, Reply, TWO, World, fail};
use crate::ModelErrorClass as Class;
use crate::accounts::{Accounts, ModelName};
use crate::provider::ProviderInfo;
use crate::route::{ProbePrompt, RouterOptions, listed, try_account};

const LIMIT: Duration = Duration::from_secs(5);

fn nothing(_: &ProviderInfo) -> ProbePrompt {
    ProbePrompt::default()
}

fn accounts() -> Accounts {
    Accounts::parse(TWO, Path::new("models.toml")).unwrap()
}

fn options() -> (RouterOptions, Arc<World>) {
    let world = Arc::new(World::default());
    let of = In(Arc::clone(&world));
    let usual = RouterOptions::new(Arc::new(of.clone()), Arc::new(of.clone()));
    (RouterOptions { pace: Arc::new(of), ..usual }, world)
}

#[tokio::test]
async fn every_key_is_tried_once_and_says_what_to_do() {
    let (options, world) = options();
    world.tell("a one", [fail(Class::Auth)]);
    world.tell("a two", [Reply::Say("ready")]);
    let [one, two] =
        try_account(&accounts(), &ModelName::new("a", "m"), &options, &nothing, &|provider| provider, LIMIT)
            .await
            .unwrap()
            .try_into()
            .unwrap();
    assert_eq!(world.asked(), ["a/m one", "a/m two"]);
    assert_eq!(one.answering.unwrap().credential.as_deref(), Some("one"));
    let error = one.error.unwrap();
    assert_eq!(error.code, "model_auth_failed");
    assert!(error.recovery_hint.is_some());
    assert_eq!((two.text.as_str(), two.error.is_none()), ("ready", true));
    world.tell("b", [fail(Class::Transient)]);
    let [b] = try_account(&accounts(), &ModelName::new("b", "n"), &options, &nothing, &|provider| provider, LIMIT)
        .await
        .unwrap()
        .try_into()
        .unwrap();
    assert_eq!(b.error.unwrap().code, "model_unavailable");
    assert_eq!(world.asked().len(), 1, "a test does not try again");
    assert!(
        try_account(&accounts(), &ModelName::new("c", "n"), &options, &nothing, &|provider| provider, LIMIT)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn an_empty_answer_is_a_failure() {
    let (options, world) = options();
    world.tell("b", [Reply::Say("  ")]);
    let [b] = try_account(&accounts(), &ModelName::new("b", "n"), &options, &nothing, &|provider| provider, LIMIT)
        .await
        .unwrap()
        .try_into()
        .unwrap();
    assert_eq!(b.error.unwrap().code, "model_answer_malformed");
}

#[test]
fn a_model_is_listed_once_with_its_places() {
    let file = format!("{TWO}low_cost = ['b/n']\n");
    let all = listed(&Accounts::parse(&file, Path::new("models.toml")).unwrap());
    let lines: Vec<String> = all.iter().map(|one| format!("{}: {}", one.target.name, one.routes.join(", "))).collect();
    assert_eq!(lines, ["a/m: default 1", "b/n: default 2, low_cost 1"]);
}
