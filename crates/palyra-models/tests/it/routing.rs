//! A router over real connections: failing servers, keys that are refused, answers that break off.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use palyra_common::Environment;
use palyra_models::testing::{Fault, ModelServer, Reply};
use palyra_models::{
    Accounts, AssembledTurn, HttpProviders, ModelError, ModelErrorClass, ModelEvent, ModelProvider as _, RoutePolicy,
    Router, RouterOptions, TurnAssembler,
};
use serde_json::json;

use crate::support::request;

fn router(first: &ModelServer, second: &ModelServer) -> Router {
    let file = format!(
        "version = 1\n[providers.first]\nkind = 'openai_compatible'\nbase_url = '{}'\n\
         [[providers.first.keys]]\nname = 'stale'\nkey = 'env:STALE'\n[[providers.first.keys]]\nname = 'fresh'\nkey = 'env:FRESH'\n\
         [providers.second]\nkind = 'openai_compatible'\nbase_url = '{}'\n\
         [routes]\ndefault = ['first/m', 'second/n']\n",
        first.base_url(),
        second.base_url()
    );
    let accounts = Accounts::parse(&file, Path::new("models.toml")).unwrap();
    let environment = Environment::from_pairs([("STALE", "sk-hunter2-stale"), ("FRESH", "sk-hunter2-fresh")]);
    let options = RouterOptions::new(Arc::new(HttpProviders), Arc::new(environment));
    let policy = RoutePolicy { first_wait: Duration::from_millis(5), ..RoutePolicy::default() };
    Router::new(accounts, RouterOptions { policy, ..options }).unwrap()
}

fn servers(first: Vec<Reply>, second: Vec<Reply>) -> (ModelServer, ModelServer) {
    (ModelServer::start(first).unwrap(), ModelServer::start(second).unwrap())
}

async fn answer(router: &Router) -> Result<AssembledTurn, ModelError> {
    let mut stream = router.stream(request()).await?;
    let mut assembler = TurnAssembler::new();
    while let Some(event) = stream.next().await {
        assembler.push(&event?)?;
    }
    assert!(assembler.is_finished());
    Ok(assembler.finish())
}

fn refused() -> Reply {
    Reply::status(401, &json!({"error": {"message": "invalid key"}}))
}

#[tokio::test]
async fn a_refused_key_gives_way_and_neither_is_shown() {
    let (first, second) = servers(vec![refused(), Reply::text(&["hello"])], vec![]);
    let turn = answer(&router(&first, &second)).await.unwrap();
    let requests = first.requests();
    let keys: Vec<_> = requests.iter().map(|request| request.header("authorization").unwrap()).collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys.first(), keys.last());
    assert_eq!(turn.attempts.first().unwrap().error.class, ModelErrorClass::Auth);
    assert!(!format!("{turn:?}").contains("hunter2"));
    assert!(second.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_falls_over_in_the_middle_is_replaced_and_its_words_are_taken_back() {
    let broken = || Reply::text(&["half ", "an ", "answer"]).fault(Fault::CloseAfter(500));
    let (first, second) = servers(vec![broken(), broken()], vec![Reply::text(&["whole"])]);
    let turn = answer(&router(&first, &second)).await.unwrap();
    assert_eq!((turn.text.as_str(), turn.attempts.len()), ("whole", 2));
    let answering = turn.answering.unwrap();
    assert_eq!((answering.provider.as_str(), answering.model.as_str(), answering.credential), ("second", "n", None));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_passed_over() {
    let (first, second) = servers(vec![], vec![Reply::text(&["here"])]);
    let router = router(&first, &second);
    drop(first);
    let turn = answer(&router).await.unwrap();
    assert_eq!(turn.text, "here");
    assert!(turn.attempts.iter().all(|attempt| attempt.error.class == ModelErrorClass::Network));
}

#[tokio::test]
async fn dropping_a_routed_call_closes_its_connection() {
    let (first, second) = servers(vec![Reply::text(&["word "; 40]).fault(Fault::SilentAfter(2000))], vec![]);
    let mut stream = router(&first, &second).stream(request()).await.unwrap();
    while !matches!(stream.next().await.unwrap().unwrap(), ModelEvent::TextDelta(_)) {}
    drop(stream);
    let patience = std::time::Instant::now() + Duration::from_secs(10);
    while first.abandoned() == 0 && std::time::Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(first.abandoned(), 1);
}

/// A router over one silent server and one that answers, with a patience of its own for the first.
fn impatient(timeouts: &str, first: &ModelServer, second: &ModelServer) -> Router {
    let file = format!(
        "version = 1\n[providers.first]\nkind = 'openai_compatible'\nbase_url = '{}'\ntimeouts = {timeouts}\n\
         [providers.second]\nkind = 'openai_compatible'\nbase_url = '{}'\n[routes]\ndefault = ['first/m', 'second/n']\n",
        first.base_url(),
        second.base_url()
    );
    let accounts = Accounts::parse(&file, Path::new("models.toml")).unwrap();
    let options = RouterOptions::new(Arc::new(HttpProviders), Arc::new(Environment::default()));
    let policy =
        RoutePolicy { first_wait: Duration::from_millis(5), tries_before_another: 1, ..RoutePolicy::default() };
    Router::new(accounts, RouterOptions { policy, ..options }).unwrap()
}

#[tokio::test]
async fn each_account_has_its_own_patience_with_silence() {
    for (timeouts, silent_after, said) in [
        ("{ first_byte_seconds = 1 }", 0, "no first byte of its answer within 1 seconds"),
        ("{ between_chunks_seconds = 1 }", 300, "sent nothing for 1 seconds between two parts"),
        ("{ total_seconds = 1 }", 300, "not complete after 1 seconds in total"),
    ] {
        let silent = Reply::text(&["a ", "long ", "answer"]).fault(Fault::SilentAfter(silent_after));
        let (first, second) = servers(vec![silent], vec![Reply::text(&["here"])]);
        let turn = answer(&impatient(timeouts, &first, &second)).await.unwrap();
        assert_eq!(turn.text, "here", "{timeouts}");
        let attempt = turn.attempts.first().unwrap();
        assert_eq!(attempt.error.class, ModelErrorClass::Timeout, "{timeouts}");
        assert!(attempt.error.message.contains(said), "{timeouts}: {}", attempt.error);
    }
}
