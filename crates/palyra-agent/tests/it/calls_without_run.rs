//! Model calls that belong to no run: embeddings and tests of models. Budgets hold for them, and what they cost is in the books however they end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use palyra_agent::Spending;
use palyra_budget::{Account, BudgetScope, Limits, MicroUsd, Threshold, UsageGrouping};
use palyra_common::{RunId, Timestamp};
use palyra_journal::NewRecord;
use palyra_models::{
    Answering, EmbeddingInput, EmbeddingRequest, Embeddings, Message, ModelError, ModelErrorClass, ModelEvent,
    ModelProvider, ModelRequest, ModelStream, PriceTable, ProviderInfo, Purpose, Seller, StopReason, Usage,
};

use crate::support::{Bench, Setup};

/// A token costs a cent; those of the model that the server pretends to be cost nothing.
const PRICES: &str = r#"
version = 1
[[price]]
provider = "vendor"
models = ["*"]
as_of = "2026-01-01"
source = "test"
input = 10_000_000_000
output = 10_000_000_000
[[price]]
provider = "vendor"
models = ["free"]
as_of = "2026-01-01"
source = "test"
input = 0
output = 0
"#;
const CENT: u64 = 10_000;
/// Forty words: forty tokens of any vocabulary, or a few less.
const WORDS: usize = 40;

/// What the embedding model does.
#[derive(Clone)]
enum Embedding {
    Reports(Option<u64>),
    Fails(ModelError),
    Hangs,
}

struct Vendor(Embedding);

#[async_trait]
impl ModelProvider for Vendor {
    fn name(&self) -> &str {
        "vendor"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "vendor".into(), model: "large".into(), context_tokens: 100_000, is_language_model: true }
    }
    fn seller(&self, provider: &str) -> Seller {
        Seller::new(provider, "vendor", None)
    }
    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        let by = Answering { provider: "vendor".into(), model: "large".into(), credential: None };
        let events = vec![
            ModelEvent::Answering(by),
            ModelEvent::TextDelta("yes".into()),
            ModelEvent::Usage(Usage::plain(30, 5)),
            ModelEvent::Finished(StopReason::EndTurn),
        ];
        Ok(stream::iter(events).map(Ok).boxed())
    }
    async fn embed(&self, _: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        match &self.0 {
            Embedding::Reports(input_tokens) => Ok(Some(Embeddings {
                model: "free".into(),
                vectors: vec![vec![1.0]],
                input_tokens: *input_tokens,
                asked: None,
            })),
            Embedding::Fails(error) => Err(error.clone()),
            Embedding::Hangs => std::future::pending().await,
        }
    }
}

fn setup(embedding: Embedding, limit: &str) -> Setup {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::new(Vendor(embedding)) as Arc<_>);
    let limits = Limits::from_settings([(BudgetScope::Global, Threshold::Hard, limit)]).unwrap();
    setup.spending = Spending::new(PriceTable::with_own(PRICES, "test").unwrap(), limits);
    setup
}

fn request() -> EmbeddingRequest {
    let input = EmbeddingInput::Texts(vec!["word ".repeat(WORDS)]);
    EmbeddingRequest { model: "vectors".to_owned(), input, dimensions: None }
}

fn spent(bench: &Bench) -> MicroUsd {
    bench.engine.spending().ledger().standing(&Account::Global).spent
}

/// Cents in the usage report, and the rows with their calls. The books agree with it.
async fn reported(bench: &Bench) -> (u64, Vec<(String, u64)>) {
    let report = bench.engine.usage(None, UsageGrouping::Model).await.unwrap();
    assert_eq!(report.total.micro_usd, spent(bench), "reports and budgets agree");
    let rows = report.groups.iter().map(|group| (group.key.clone(), group.sums.calls)).collect();
    (report.total.micro_usd.0 / CENT, rows)
}

async fn embedded(embedding: Embedding) -> (u64, Vec<(String, u64)>) {
    let bench = setup(embedding, "$10000").start().await;
    let _ = bench.engine.embed("me", request()).await;
    reported(&bench).await
}

#[tokio::test]
async fn embeddings_are_priced_as_the_model_that_was_asked_for_and_never_below_our_own_count() {
    let row = vec![("vendor/vectors".to_owned(), 1)];
    assert_eq!(embedded(Embedding::Reports(Some(50))).await, (50, row.clone()));
    let (raised, rows) = embedded(Embedding::Reports(Some(20))).await;
    assert!((25..=50).contains(&raised) && rows == row, "{raised} {rows:?}");
    let (worst, rows) = embedded(Embedding::Reports(None)).await;
    assert!(worst >= 200 && rows == row, "no more tokens than bytes: {worst} {rows:?}");
    for (what, embedding) in [
        ("nothing", Embedding::Reports(Some(0))),
        ("too much", Embedding::Reports(Some(100_000_000))),
        ("nothing any more", Embedding::Fails(ModelError::new(ModelErrorClass::Network, "it broke off"))),
    ] {
        assert_eq!(embedded(embedding).await, (worst, row.clone()), "the server says {what}");
    }
    let refused = ModelError::new(ModelErrorClass::RateLimit, "slow down").status(429);
    assert_eq!(embedded(Embedding::Fails(refused)).await, (0, Vec::new()));
}

#[tokio::test]
async fn a_budget_refuses_embeddings_before_they_are_asked_for() {
    let bench = setup(Embedding::Reports(Some(50)), "$1").start().await;
    let refused = bench.engine.embed("me", request()).await.unwrap_err();
    assert_eq!((refused.code.as_ref(), spent(&bench)), ("budget_exceeded", MicroUsd::ZERO));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn embeddings_that_a_crash_interrupted_are_booked_in_full() {
    let first = runtime();
    let (directory, worst) = first.block_on(async {
        let bench = setup(Embedding::Hangs, "$10000").start().await;
        let engine = bench.engine.clone();
        let _call = tokio::spawn(async move { engine.embed("me", request()).await });
        let standing = || bench.engine.spending().ledger().standing(&Account::Global);
        while standing().reserved.is_zero() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The reservation is on the journal before the call is made.
        tokio::time::sleep(Duration::from_millis(100)).await;
        (bench.directory, standing().reserved)
    });
    first.shutdown_timeout(Duration::from_millis(200));
    let second = runtime();
    second.block_on(async {
        let bench = setup(Embedding::Hangs, "$10000").start_in(directory).await;
        let row = vec![("vendor/vectors".to_owned(), 1)];
        assert_eq!(reported(&bench).await, (worst.0 / CENT, row));
    });
    second.shutdown_timeout(Duration::from_millis(200));
}

async fn tested(bench: &Bench) -> Result<Vec<ModelEvent>, ModelError> {
    let tests = bench.engine.model_tests("me");
    let provider = tests.provider(Arc::new(Vendor(Embedding::Hangs)));
    let request = ModelRequest {
        max_output_tokens: Some(100),
        ..ModelRequest::new(RunId::generate(), 1, Purpose::Turn, vec![Message::user("word ".repeat(20))])
    };
    let events = provider.stream(request).await?.collect::<Vec<_>>().await.into_iter().collect();
    assert_eq!(tests.take_refusal().is_some(), matches!(&events, Err(error) if error.class == ModelErrorClass::Quota));
    events
}

#[tokio::test]
async fn a_test_of_a_model_is_held_to_budgets_and_counted() {
    let bench = setup(Embedding::Hangs, "$10000").start().await;
    assert_eq!(tested(&bench).await.unwrap().len(), 4);
    tested(&bench).await.unwrap();
    assert_eq!(reported(&bench).await, (70, vec![("vendor/large".to_owned(), 2)]));
    let bench = setup(Embedding::Hangs, "$0.50").start().await;
    assert_eq!(tested(&bench).await.unwrap_err().class, ModelErrorClass::Quota);
    assert_eq!(reported(&bench).await, (0, Vec::new()));
}

#[tokio::test]
async fn a_record_that_cannot_be_booked_is_named_while_the_daemon_runs() {
    let bench = setup(Embedding::Hangs, "$1").start().await;
    bench.engine.refresh_quarantined_usage().await;
    assert_eq!(bench.engine.spending().quarantined(), None);
    let record = NewRecord::new("embeddings.used", Timestamp(1), b"{\"no\":\"bill\"}".to_vec());
    bench.journal.append(vec![record]).await.unwrap();
    bench.engine.refresh_quarantined_usage().await;
    let found = bench.engine.spending().quarantined().expect("it was set aside");
    assert_eq!((found.records, found.reason.contains("embeddings.used")), (1, true), "{}", found.reason);
}
