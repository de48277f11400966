//! What a call is booked at when its provider's numbers cannot be believed, and that usage and budgets agree about it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use palyra_agent::{RunRow, Spending};
use palyra_budget::{Account, BudgetScope, Limits, MicroUsd, Threshold, UsageGrouping, UsageReport};
use palyra_common::RunLifecyclePhase;
use palyra_models::{
    AnswerEnd, Answering, Attempt, ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream,
    PriceTable, ProviderInfo, Seller, StopReason, Usage,
};
use tempfile::TempDir;

use crate::support::{Bench, FailsOnce, Setup};

/// One token costs a cent, of a request and of an answer.
const PRICES: &str = r#"
version = 1
[[price]]
provider = "vendor"
models = ["*"]
as_of = "2026-01-01"
source = "test"
input = 10_000_000_000
output = 10_000_000_000
"#;
const CENT: u64 = 10_000;
/// Tokens that an answer may have.
const MAX_OUTPUT: u32 = 1_000;

const LIMIT: &str = "$10000";

/// Answers every call with the same events, then goes on as told.
#[derive(Clone)]
struct Vendor {
    events: Vec<ModelEvent>,
    then: Then,
}

#[derive(Clone)]
enum Then {
    End,
    Fail(ModelError),
    Hang,
}

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
    fn tries_again(&self) -> bool {
        true
    }
    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        let events = stream::iter(self.events.clone()).map(Ok);
        Ok(match self.then.clone() {
            Then::End => events.boxed(),
            Then::Fail(error) => events.chain(stream::once(async { Err(error) })).boxed(),
            Then::Hang => events.chain(stream::pending()).boxed(),
        })
    }
}

fn by(model: &str) -> Answering {
    Answering { provider: "vendor".into(), model: model.into(), credential: None }
}

fn answer(usage: Option<Usage>) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::Answering(by("large")), ModelEvent::TextDelta("word ".repeat(200))];
    events.extend(usage.map(ModelEvent::Usage));
    events.push(ModelEvent::Finished(StopReason::EndTurn));
    events
}

fn setup(vendor: Vendor) -> Setup {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::new(vendor) as Arc<_>);
    setup.max_output_tokens = Some(MAX_OUTPUT);
    let limits = Limits::from_settings([(BudgetScope::Global, Threshold::Hard, LIMIT)]).unwrap();
    setup.spending = Spending::new(PriceTable::with_own(PRICES, "test").unwrap(), limits);
    setup
}

async fn ended(bench: &Bench, run: &RunRow) -> RunRow {
    let end = async {
        loop {
            let row = bench.engine.run(run.run_id).await.unwrap();
            if row.phase.is_terminal() {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), end).await.expect("the run ends")
}

async fn run(bench: &Bench) -> RunRow {
    ended(bench, &bench.engine.create_run(bench.task("one")).await.unwrap()).await
}

async fn by_model(bench: &Bench) -> UsageReport {
    bench.engine.usage(None, UsageGrouping::Model).await.unwrap()
}

fn spent(bench: &Bench) -> MicroUsd {
    bench.engine.spending().ledger().standing(&Account::Global).spent
}

/// What the books say about one run against such a vendor: its cost and whether that is assumed.
async fn booked(events: Vec<ModelEvent>, then: Then) -> (u64, bool) {
    let bench = setup(Vendor { events, then }).start().await;
    let row = run(&bench).await;
    let cost = bench.engine.run_details(row.run_id).await.unwrap().cost.unwrap();
    let report = by_model(&bench).await;
    assert_eq!(report.total.micro_usd, cost.micro_usd, "the report agrees with the run");
    assert_eq!(spent(&bench), cost.micro_usd, "the books agree with the run");
    (cost.micro_usd.0 / CENT, cost.assumed)
}

#[tokio::test]
async fn what_is_unknown_or_implausible_is_booked_at_the_worst_case() {
    let broke_off = || Then::Fail(ModelError::new(ModelErrorClass::Network, "the connection broke"));
    let (unknown, assumed) = booked(answer(None), Then::End).await;
    assert!(unknown > u64::from(MAX_OUTPUT) && assumed, "the request and the longest answer: {unknown}");
    // The path of the workspace is part of the request, and each has its own.
    let is_worst = |(cost, assumed): (u64, bool), what: &str| {
        assert!(assumed && cost.abs_diff(unknown) < 50, "the provider says {what}: {cost}, not {unknown}");
    };
    for (what, usage) in [
        ("nothing", Usage::plain(0, 0)),
        ("nothing for the request", Usage::plain(0, 260)),
        ("nothing for the answer", Usage::plain(600, 0)),
        ("one token for two hundred words", Usage::plain(600, 1)),
        ("more than any model takes", Usage::plain(u64::MAX, u64::MAX)),
        ("more than this model takes", Usage::plain(90_000_000, 10)),
        ("more cached tokens than there are", Usage { cached_tokens: 9_000, ..Usage::plain(700, 260) }),
        ("that it cost nothing", Usage { cost_micro_usd: Some(0), ..Usage::plain(700, 260) }),
    ] {
        is_worst(booked(answer(Some(usage)), Then::End).await, what);
    }
    let mut cut = answer(Some(Usage::plain(600, 1)));
    cut.pop();
    is_worst(booked(cut, broke_off()).await, "nothing more: the answer breaks off");
    is_worst(booked(vec![ModelEvent::Answering(by("large"))], broke_off()).await, "nothing at all");
    let unsent = ModelError::new(ModelErrorClass::Network, "connection refused").not_sent();
    let refused = ModelError::new(ModelErrorClass::Auth, "no").status(401);
    for error in [unsent, refused] {
        let bench = setup(Vendor { events: Vec::new(), then: Then::Fail(error) }).start().await;
        run(&bench).await;
        assert_eq!((spent(&bench), by_model(&bench).await.total.micro_usd), (MicroUsd::ZERO, MicroUsd::ZERO));
    }
}

#[tokio::test]
async fn a_plausible_report_is_booked_as_it_is() {
    assert_eq!(booked(answer(Some(Usage::plain(700, 260))), Then::End).await, (960, false));
}

#[tokio::test]
async fn a_journal_that_fails_once_at_any_moment_fails_no_run_and_loses_no_bill() {
    let faults = Arc::new(FailsOnce::default());
    let mut setup = setup(Vendor { events: answer(Some(Usage::plain(700, 260))), then: Then::End });
    setup.faults = Some(Arc::<FailsOnce>::clone(&faults));
    let bench = setup.start().await;
    run(&bench).await;
    for at in 1.. {
        faults.arm(at);
        let created = bench.engine.create_run(bench.task("one")).await;
        bench.settle().await;
        let has_failed = faults.disarm();
        // One that was refused is no run.
        if let Ok(run) = created {
            let details = bench.engine.run_details(run.run_id).await.unwrap();
            assert_eq!(details.row.phase, RunLifecyclePhase::Completed, "operation {at}: {:?}", details.row.detail);
            let cost = details.cost.unwrap();
            assert_eq!((cost.micro_usd.0 / CENT, cost.assumed), (960, false), "operation {at}");
        }
        if !has_failed {
            break;
        }
    }
}

#[tokio::test]
async fn an_absurd_report_stalls_nothing() {
    let absurd = Usage { cached_tokens: u64::MAX, ..Usage::plain(u64::MAX, 1_000_000_000_000_000_000) };
    let bench = setup(Vendor { events: answer(Some(absurd)), then: Then::End }).start().await;
    for _ in 0..3 {
        assert_eq!(run(&bench).await.phase, RunLifecyclePhase::Completed);
    }
    assert_eq!(by_model(&bench).await.total.calls, 3);
}

#[tokio::test]
async fn a_cancelled_call_is_in_the_usage_of_its_model() {
    let bench = setup(Vendor { events: vec![ModelEvent::Answering(by("large"))], then: Then::Hang }).start().await;
    let begun = bench.engine.create_run(bench.task("one")).await.unwrap();
    while bench.engine.spending().ledger().standing(&Account::Global).reserved.is_zero() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    bench.engine.cancel(begun.run_id, "me", None).await.unwrap();
    ended(&bench, &begun).await;
    let report = by_model(&bench).await;
    assert!(!spent(&bench).is_zero());
    assert_eq!(report.total.micro_usd, spent(&bench));
    assert_eq!(report.total.assumed_micro_usd, spent(&bench));
    let rows: Vec<_> = report.groups.iter().map(|group| (group.key.as_str(), group.sums.calls)).collect();
    assert_eq!(rows, [("vendor/large", 1)]);
    let cost = bench.engine.run_details(begun.run_id).await.unwrap().cost.unwrap();
    assert_eq!(cost.micro_usd, spent(&bench), "the run says the same");
}

#[tokio::test]
async fn each_try_is_in_the_row_of_its_model() {
    let failed = Attempt {
        asked: by("small"),
        error: ModelError::new(ModelErrorClass::Timeout, "too late"),
        wait_ms: 0,
        usage: None,
        end: AnswerEnd::Missing,
    };
    let mut events = vec![ModelEvent::Answering(by("small")), ModelEvent::Attempted(failed)];
    events.extend(answer(Some(Usage::plain(700, 260))));
    let bench = setup(Vendor { events, then: Then::End }).start().await;
    run(&bench).await;
    let report = by_model(&bench).await;
    let row = |key: &str| report.groups.iter().find(|group| group.key == key).map(|group| group.sums).unwrap();
    assert_eq!((row("vendor/large").calls, row("vendor/large").micro_usd), (1, MicroUsd(960 * CENT)));
    assert_eq!(row("vendor/small").calls, 1);
    assert!(row("vendor/small").micro_usd > MicroUsd(u64::from(MAX_OUTPUT) * CENT), "in full");
    assert_eq!(report.total.micro_usd, spent(&bench));
}

#[tokio::test]
async fn an_empty_answer_that_came_to_its_end_is_booked_at_what_it_reported() {
    let lost = |end| {
        let failed = Attempt {
            asked: by("small"),
            error: ModelError::new(ModelErrorClass::Malformed, "the answer is empty"),
            wait_ms: 0,
            usage: Some(Usage::plain(700, 3)),
            end,
        };
        let mut events = vec![ModelEvent::Answering(by("small")), ModelEvent::Attempted(failed)];
        events.extend(answer(Some(Usage::plain(700, 260))));
        events
    };
    let (cost, assumed) = booked(lost(AnswerEnd::Arrived), Then::End).await;
    assert_eq!((cost, assumed), (703 + 960, false));
    let (cost, assumed) = booked(lost(AnswerEnd::Missing), Then::End).await;
    assert!(cost > u64::from(MAX_OUTPUT) + 960 && assumed, "{cost}");
}

#[tokio::test]
async fn fewer_tokens_than_were_sent_and_received_are_raised_to_our_own_count() {
    let (honest, _) = booked(answer(Some(Usage::plain(700, 260))), Then::End).await;
    let (cost, assumed) = booked(answer(Some(Usage::plain(600, 60))), Then::End).await;
    assert!(assumed && cost > 600 + 120 && cost < honest, "two hundred words are not 60 tokens: {cost}");
}

#[tokio::test]
async fn a_price_that_a_server_states_for_a_free_call_is_not_booked() {
    let stated = Usage { cost_micro_usd: Some(9_999_000_000), ..Usage::plain(700, 260) };
    let free = PRICES.replace("10_000_000_000", "0");
    let mut setup = setup(Vendor { events: answer(Some(stated)), then: Then::End });
    let limits = Limits::from_settings([(BudgetScope::Global, Threshold::Hard, LIMIT)]).unwrap();
    setup.spending = Spending::new(PriceTable::with_own(&free, "test").unwrap(), limits);
    let bench = setup.start().await;
    let row = run(&bench).await;
    assert_eq!((row.phase, spent(&bench)), (RunLifecyclePhase::Completed, MicroUsd::ZERO));
    assert_eq!(by_model(&bench).await.total.micro_usd, MicroUsd::ZERO);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn a_call_that_a_crash_interrupted_is_in_the_usage_of_its_model() {
    let first = runtime();
    let hanging = Vendor { events: vec![ModelEvent::Answering(by("large"))], then: Then::Hang };
    let bench = first.block_on(async {
        let bench = setup(hanging).start().await;
        bench.engine.create_run(bench.task("one")).await.unwrap();
        while bench.engine.spending().ledger().standing(&Account::Global).reserved.is_zero() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        bench
    });
    let directory: TempDir = bench.crash(first);
    let second = runtime();
    second.block_on(async {
        let bench =
            setup(Vendor { events: answer(Some(Usage::plain(700, 260))), then: Then::End }).start_in(directory).await;
        let begun = bench
            .engine
            .runs(palyra_agent::RunFilter { limit: 10, ..palyra_agent::RunFilter::default() })
            .await
            .unwrap()
            .remove(0);
        assert_eq!(ended(&bench, &begun).await.phase, RunLifecyclePhase::Completed);
        let report = by_model(&bench).await;
        let rows: Vec<_> = report.groups.iter().map(|group| (group.key.as_str(), group.sums.calls)).collect();
        assert_eq!(rows, [("vendor/large", 2)]);
        assert!(report.total.micro_usd > MicroUsd(960 * CENT));
        assert_eq!(report.total.micro_usd, spent(&bench));
    });
    second.shutdown_timeout(Duration::from_millis(200));
}
