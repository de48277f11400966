//! Budgets: reserved before a call, settled after it, and never exceeded however many runs spend at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use palyra_agent::{ApprovalFilter, NewRun, Resumption, RunRow, Spending};
use palyra_budget::{Account, BudgetScope, Limits, MicroUsd, Threshold, UsageGrouping};
use palyra_common::{ApprovalDecision, ApprovalId, ApprovalSubject, RunLifecyclePhase, TerminationReason};
use palyra_models::{
    Answering, ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, PriceTable, ProviderInfo, Seller,
    StopReason, Usage,
};

use crate::support::{Bench, Setup, actor, answer};

/// One token of an answer costs a cent, requests nothing; so an answer of `ANSWER` tokens costs that many cents.
const PRICES: &str = r#"
version = 1
[[price]]
provider = "shop"
models = ["dear"]
as_of = "2026-01-01"
source = "test"
input = 0
output = 10_000_000_000
"#;
const ANSWER: u64 = 3;
const CENT: u64 = 10_000;

/// Sells answers of a fixed length and counts them.
#[derive(Default)]
struct Shop {
    sold: AtomicU64,
    pause: Duration,
    fails: AtomicU64,
}

#[async_trait]
impl ModelProvider for Shop {
    fn name(&self) -> &str {
        "shop"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "shop".into(), model: "dear".into(), context_tokens: 100_000, is_language_model: true }
    }
    fn seller(&self, provider: &str) -> Seller {
        Seller::new(provider, "shop", None)
    }
    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        tokio::time::sleep(self.pause).await;
        if self.fails.load(Ordering::SeqCst) > 0 {
            self.fails.fetch_sub(1, Ordering::SeqCst);
            return Err(ModelError::new(palyra_models::ModelErrorClass::Auth, "the key was refused"));
        }
        self.sold.fetch_add(1, Ordering::SeqCst);
        let by = Answering { provider: "shop".into(), model: "dear".into(), credential: None };
        Ok(Box::pin(stream::iter(
            [
                ModelEvent::Answering(by),
                ModelEvent::TextDelta("bought".into()),
                ModelEvent::Usage(Usage::plain(10, ANSWER)),
                ModelEvent::Finished(StopReason::EndTurn),
            ]
            .map(Ok),
        )))
    }
}

async fn bench(shop: &Arc<Shop>, limits: &[(BudgetScope, Threshold, &str)], max_output: u32) -> Bench {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::clone(shop) as Arc<_>);
    setup.max_concurrent = 256;
    setup.max_output_tokens = Some(max_output);
    let limits = Limits::from_settings(limits.iter().copied()).unwrap();
    setup.spending = Spending::new(PriceTable::with_own(PRICES, "test").unwrap(), limits);
    setup.start().await
}

async fn ended(bench: &Bench, run: &RunRow) -> RunRow {
    loop {
        let row = bench.engine.run(run.run_id).await.unwrap();
        if row.phase.is_terminal() {
            return row;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_run_stops_before_the_call_and_goes_on_when_a_person_grants_more() {
    let shop = Arc::new(Shop::default());
    let bench = bench(&shop, &[(BudgetScope::Global, Threshold::Hard, "$0.05")], 4).await;
    let first = ended(&bench, &bench.engine.create_run(bench.task("one")).await.unwrap()).await;
    assert_eq!(first.phase, RunLifecyclePhase::Completed);
    let cost = bench.engine.run_details(first.run_id).await.unwrap().cost.unwrap();
    assert_eq!((cost.micro_usd.0, cost.assumed), (ANSWER * CENT, false));
    // Three cents are spent; the next call may cost four.
    let second = ended(&bench, &bench.engine.create_run(bench.task("two")).await.unwrap()).await;
    assert_eq!((second.phase, second.reason), (RunLifecyclePhase::Failed, Some(TerminationReason::BudgetExceeded)));
    assert_eq!(second.detail.unwrap().code, "budget_exceeded");
    assert_eq!(shop.sold.load(Ordering::SeqCst), 1, "nothing was sent");

    bench.engine.resume(second.run_id, &actor("ada"), Resumption::default()).await.unwrap();
    let again = ended(&bench, &second_row(&bench, second.run_id).await).await;
    assert_eq!(again.reason, Some(TerminationReason::BudgetExceeded), "nothing has changed");

    let more = Resumption { over_budget: Some(MicroUsd(2 * CENT)), model: None };
    bench.engine.resume(second.run_id, &actor("ada"), more.clone()).await.unwrap();
    bench.engine.decide_approval(open_question(&bench).await, answer(ApprovalDecision::Deny)).await.unwrap();
    let refused = ended(&bench, &second_row(&bench, second.run_id).await).await;
    assert_eq!(refused.reason, Some(TerminationReason::BudgetExceeded), "a person said no");
    assert_eq!(shop.sold.load(Ordering::SeqCst), 1);

    bench.engine.resume(second.run_id, &actor("ada"), more).await.unwrap();
    bench.engine.decide_approval(open_question(&bench).await, answer(ApprovalDecision::Allow)).await.unwrap();
    let done = ended(&bench, &second_row(&bench, second.run_id).await).await;
    assert_eq!((done.phase, done.answer.as_deref()), (RunLifecyclePhase::Completed, Some("bought")));
    let replayed = bench.engine.replay(second.run_id).await.unwrap();
    assert_eq!(replayed.difference, None);

    let third = ended(&bench, &bench.engine.create_run(bench.task("three")).await.unwrap()).await;
    assert_eq!(third.reason, Some(TerminationReason::BudgetExceeded), "the grant was for one run");
}

async fn open_question(bench: &Bench) -> ApprovalId {
    let open = bench.engine.approvals(ApprovalFilter { run_id: None, open: Some(true) }).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].subject, ApprovalSubject::BudgetOverride);
    assert_eq!(open[0].summary, "spend up to $0.02 beyond the budgets");
    open[0].approval_id
}

async fn second_row(bench: &Bench, id: palyra_common::RunId) -> RunRow {
    bench.engine.run(id).await.unwrap()
}

#[tokio::test]
async fn a_run_whose_provider_refused_goes_on_once_that_is_mended() {
    let shop = Arc::new(Shop { fails: AtomicU64::new(1), ..Shop::default() });
    let bench = bench(&shop, &[], 4).await;
    let failed = ended(&bench, &bench.engine.create_run(bench.task("one")).await.unwrap()).await;
    assert_eq!((failed.phase, failed.reason), (RunLifecyclePhase::Failed, Some(TerminationReason::ProviderError)));
    bench.engine.resume(failed.run_id, &actor("ada"), Resumption::default()).await.unwrap();
    let done = ended(&bench, &second_row(&bench, failed.run_id).await).await;
    assert_eq!(done.phase, RunLifecyclePhase::Completed);
    assert_eq!(bench.engine.replay(failed.run_id).await.unwrap().difference, None);
    let error = bench.engine.resume(failed.run_id, &actor("ada"), Resumption::default()).await.unwrap_err();
    assert!(error.to_string().contains("over"), "{error}");

    // A reader from the beginning gets all of it, over the first ending to the last.
    let mut follower = bench.engine.follow(failed.run_id, 1).await.unwrap();
    let (mut seqs, mut endings) = (Vec::new(), 0);
    while let Some(events) = follower.next().await.unwrap() {
        seqs.extend(events.iter().map(|event| event.seq));
        endings += events.iter().filter(|event| event.is_terminal()).count();
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(endings, 2);
}

/// The race of the budget: 200 runs at once, money for 50. Reservations are worth more than what is spent, so runs wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_runs_never_spend_more_than_there_is_for_fifty() {
    let rounds: u64 = std::env::var("PALYRA_BUDGET_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    for round in 0..rounds {
        let shop = Arc::new(Shop { pause: Duration::from_millis(round % 3), ..Shop::default() });
        let budget = format!("${}.{:02}", 50 * ANSWER / 100, 50 * ANSWER % 100);
        let bench = bench(&shop, &[(BudgetScope::Day, Threshold::Hard, &budget)], 4).await;
        let tasks: Vec<NewRun> = (0..200).map(|number| bench.task(&format!("task {number}"))).collect();
        let runs = futures::future::join_all(tasks.into_iter().map(|task| bench.engine.create_run(task))).await;
        let mut outcomes: BTreeMap<Option<TerminationReason>, u64> = BTreeMap::new();
        for run in runs {
            *outcomes.entry(ended(&bench, &run.unwrap()).await.reason).or_default() += 1;
        }
        let sold = shop.sold.load(Ordering::SeqCst);
        let report = bench.engine.usage(None, UsageGrouping::Day).await.unwrap();
        assert_eq!(report.total.micro_usd, MicroUsd(sold * ANSWER * CENT));
        assert!(report.total.micro_usd <= MicroUsd(50 * ANSWER * CENT), "{outcomes:?}");
        // The last call has to fit with its worst case, which is one cent more than it costs.
        assert_eq!(sold, 49, "{outcomes:?}");
        assert_eq!(outcomes.get(&Some(TerminationReason::BudgetExceeded)), Some(&(200 - sold)), "{outcomes:?}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn a_new_process_knows_what_was_spent_and_counts_open_calls_in_full() {
    let monthly = [(BudgetScope::Month, Threshold::Hard, "$1")];
    let first = runtime();
    let bench = first.block_on(async {
        let bench = bench(&Arc::new(Shop::default()), &monthly, 4).await;
        ended(&bench, &bench.engine.create_run(bench.task("one")).await.unwrap()).await;
        bench
    });
    let directory = bench.crash(first);

    // A call is under way when the process dies.
    let again = |pause| {
        let mut setup = Setup::script("turn = []");
        setup.provider = Some(Arc::new(Shop { pause, ..Shop::default() }) as Arc<_>);
        setup.max_output_tokens = Some(4);
        setup.spending =
            Spending::new(PriceTable::with_own(PRICES, "test").unwrap(), Limits::from_settings(monthly).unwrap());
        setup
    };
    let spent = |bench: &Bench| bench.engine.spending().ledger().standing(&Account::Global).spent;
    let second = runtime();
    let bench = second.block_on(async {
        let bench = again(Duration::from_secs(3600)).start_in(directory).await;
        assert_eq!(spent(&bench), MicroUsd(ANSWER * CENT));
        bench.engine.create_run(bench.task("two")).await.unwrap();
        let reserved = || bench.engine.spending().ledger().standing(&Account::Global).reserved;
        while reserved().is_zero() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The reservation is booked before it is recorded, and recorded before anything is sent.
        tokio::time::sleep(Duration::from_millis(200)).await;
        bench
    });
    let directory = bench.crash(second);

    let third = runtime();
    third.block_on(async {
        let bench = again(Duration::from_secs(3600)).start_in(directory).await;
        assert_eq!(spent(&bench), MicroUsd((ANSWER + 4) * CENT));
    });
    third.shutdown_timeout(Duration::from_millis(200));
}
