//! Trying a model out against the scripted server: a tool whose schema is refused is found, and what a server offers is asked once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use palyra_common::{Environment, Timestamp, ToStableError as _};
use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{
    Accounts, HttpProviders, ModelName, ModelProvider as _, Pace, ProbePrompt, ProviderInfo, Router, RouterOptions,
    default_tools, try_account,
};
use serde_json::json;

fn accounts(server: &ModelServer, more: &str) -> Accounts {
    let file = format!(
        "version = 1\n[providers.work]\nkind = 'openai_compatible'\nbase_url = '{}'\n{more}\n[routes]\ndefault = ['work/large']\n",
        server.base_url()
    );
    Accounts::parse(&file, Path::new("models.toml")).unwrap()
}

fn options() -> RouterOptions {
    let nothing: [(&str, &str); 0] = [];
    RouterOptions::new(Arc::new(HttpProviders), Arc::new(Environment::from_pairs(nothing)))
}

/// Time that goes on only when a test says so.
#[derive(Default)]
struct SteppedPace(AtomicI64);

impl SteppedPace {
    fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Pace for SteppedPace {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.advance(wait);
        Box::pin(std::future::ready(()))
    }

    fn chance(&self) -> u32 {
        0
    }
}

fn every_tool(_: &ProviderInfo) -> ProbePrompt {
    ProbePrompt { tools: default_tools(), ..ProbePrompt::default() }
}

/// The server says nothing that helps, so the list is halved until one tool is left: the first, of which every first half has it.
#[tokio::test]
async fn a_refused_schema_is_found_by_halves_where_the_server_says_nothing() {
    let refused = || Reply::status(400, &json!({"error": {"message": "cannot do that"}}));
    let tools = default_tools();
    let halvings = (0..).map(|step| tools.len() >> step).take_while(|left| *left > 1).count();
    let mut replies = vec![refused(), Reply::text(&["without tools it answers"])];
    replies.extend((0..=halvings).map(|_| refused()));
    let server = ModelServer::start(replies).unwrap();
    let name = ModelName::new("work", "large");
    let [tried] = try_account(
        &accounts(&server, ""),
        &name,
        &options(),
        &every_tool,
        &|provider| provider,
        Duration::from_secs(60),
    )
    .await
    .unwrap()
    .try_into()
    .unwrap();
    let error = tried.error.unwrap();
    let first = &tools.first().unwrap().name;
    assert!(error.message.contains(&format!("the input schema of the tool `{first}`")), "{}", error.message);
    assert!(server.requests().len() < 10, "few calls find it");
}

#[tokio::test]
async fn what_a_server_offers_is_asked_once_and_believed() {
    let server = ModelServer::start(vec![]).unwrap();
    let listed = json!({"data": [{"id": "large", "meta": {"n_ctx": 5000}}, {"id": "small", "context_length": 700}]});
    server.serve_at("/v1/models", Reply::status(200, &listed));
    let clock = Arc::new(SteppedPace::default());
    let with_clock = || RouterOptions { pace: Arc::clone(&clock) as Arc<dyn Pace>, ..options() };
    let router = Router::new(accounts(&server, ""), with_clock()).unwrap();
    assert_eq!(router.describe().context_tokens, 32_768, "nothing is asked by looking");
    let info = router.resolve("main", None).await.unwrap();
    assert_eq!((info.model.as_str(), info.context_tokens), ("work/large", 5000));
    let small = router.resolve("main", Some("work/small")).await.unwrap();
    assert_eq!((small.model.as_str(), small.context_tokens), ("work/small", 700));
    assert_eq!(server.requests().len(), 1, "one list serves all");
    let unknown = router.resolve("main", Some("work/smal")).await.unwrap_err().to_stable();
    assert_eq!((unknown.code.as_str(), unknown.exit_code() as u8), ("model_not_found", 8));
    assert!(unknown.recovery_hint.unwrap().starts_with("use `work/small`"));
    let nobody = router.resolve("main", Some("gpt")).await.unwrap_err();
    assert_eq!((nobody.to_string().as_str(), nobody.nearest.len()), ("there is no model `gpt`", 0));
    let provider = router.resolve("main", Some("work")).await.unwrap_err();
    assert_eq!(provider.nearest, ["work/large", "work/small"], "what its server has");
    let planner = router.resolve("main", Some("offline")).await.unwrap_err();
    assert_eq!(planner.nearest, ["offline/offline-planner"]);

    // It may be started again with another window; what somebody configured counts as far as the server has as much.
    clock.advance(Duration::from_secs(2));
    server.serve_at("/v1/models", Reply::status(200, &json!({"data": [{"id": "large", "meta": {"n_ctx": 16_000}}]})));
    assert_eq!(router.resolve("main", None).await.unwrap().context_tokens, 16_000);
    let smaller = Router::new(accounts(&server, "context_tokens = 9000"), options()).unwrap();
    assert_eq!(smaller.resolve("main", None).await.unwrap().context_tokens, 9000);
    let larger = Router::new(accounts(&server, "context_tokens = 90000"), options()).unwrap();
    assert_eq!(larger.resolve("main", None).await.unwrap().context_tokens, 16_000);
    // Older versions of llama.cpp say it in another place only.
    server.serve_at("/v1/models", Reply::status(200, &json!({"data": [{"id": "large"}]})));
    server.serve_at("/props", Reply::status(200, &json!({"default_generation_settings": {"n_ctx": 3000}})));
    let older = Router::new(accounts(&server, ""), options()).unwrap();
    assert_eq!(older.resolve("main", None).await.unwrap().context_tokens, 3000);

    let server = ModelServer::start(vec![]).unwrap();
    let router = Router::new(accounts(&server, "context_tokens = 9000"), options()).unwrap();
    // A server that has no list is believed to have what is asked for.
    server.serve_at("/v1/models", Reply::status(404, &json!({})));
    assert_eq!(router.resolve("main", Some("work/any")).await.unwrap().model, "work/any");
}
