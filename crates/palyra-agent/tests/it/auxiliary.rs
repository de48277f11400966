//! Auxiliary tasks in a whole engine: their states, their line, their bills, and what runs make of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use palyra_agent::{
    AgentError, AuxiliaryFilter, AuxiliaryInput, AuxiliaryOutput, AuxiliaryRow, NewAuxiliaryTask, Spending,
};
use palyra_budget::{BudgetScope, Limits, MicroUsd, Threshold, UsageGrouping};
use palyra_common::{
    AuxiliaryTaskKind, AuxiliaryTaskState, Confidentiality, Integrity, Label, RunStreamBody, ToStableError as _,
};
use palyra_models::{
    Answering, ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream, OutputShape,
    PriceTable, ProviderInfo, Purpose, Seller, StopReason, Usage,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::{Bench, FailsOnce, Setup};

/// One token of an answer costs a cent, requests nothing.
const PRICES: &str = r#"
version = 1
[[price]]
provider = "shop"
models = ["small"]
as_of = "2026-01-01"
source = "test"
input = 0
output = 10_000_000_000
"#;

/// Answers auxiliary calls in order, as soon as its gate is open, and remembers what it was asked.
struct Helper {
    answers: Mutex<VecDeque<Result<String, ModelError>>>,
    asked: watch::Sender<Vec<ModelRequest>>,
    open: watch::Sender<bool>,
}

impl Helper {
    fn new<const N: usize>(answers: [&str; N]) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(|answer| Ok((*answer).to_owned())).collect()),
            asked: watch::Sender::new(Vec::new()),
            open: watch::Sender::new(true),
        })
    }

    fn closed<const N: usize>(answers: [&str; N]) -> Arc<Self> {
        let helper = Self::new(answers);
        helper.open.send_replace(false);
        helper
    }

    fn asked(&self) -> Vec<ModelRequest> {
        self.asked.borrow().clone()
    }

    async fn was_asked(&self, times: usize) {
        let mut asked = self.asked.subscribe();
        let enough = asked.wait_for(|asked| asked.len() >= times);
        tokio::time::timeout(Duration::from_secs(20), enough).await.expect("the model is asked").unwrap();
    }
}

#[async_trait]
impl ModelProvider for Helper {
    fn name(&self) -> &str {
        "helper"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "helper".into(), model: "small".into(), context_tokens: 32_000, is_language_model: false }
    }
    fn seller(&self, _: &str) -> Seller {
        Seller::new("shop", "shop", None)
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.asked.send_modify(|asked| asked.push(request.clone()));
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| *open).await;
        let answer = self.answers.lock().unwrap().pop_front();
        let text = answer.unwrap_or_else(|| Err(ModelError::new(ModelErrorClass::Permanent, "nothing left to say")))?;
        let answering = Answering { provider: "helper".into(), model: "small".into(), credential: None };
        let events = [
            ModelEvent::Answering(answering),
            ModelEvent::TextDelta(text),
            ModelEvent::Usage(Usage::plain(100, 10)),
            ModelEvent::Finished(StopReason::EndTurn),
        ];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}

async fn bench(helper: &Arc<Helper>) -> Bench {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::clone(helper) as Arc<dyn ModelProvider>);
    setup.start().await
}

fn task(kind: AuxiliaryTaskKind, input: Value) -> NewAuxiliaryTask {
    let labels = vec![
        Label::user().from_source("the user"),
        Label::new(Integrity::Untrusted, Confidentiality::Internal).from_source("a page"),
    ];
    let input = AuxiliaryInput::read(kind, input).unwrap();
    NewAuxiliaryTask { input, labels, session_id: None, owner: Some("ada".into()), model: None }
}

fn mood() -> NewAuxiliaryTask {
    task(AuxiliaryTaskKind::Classification, json!({"text": "late again", "labels": ["glad", "cross"]}))
}

async fn rows(bench: &Bench) -> Vec<AuxiliaryRow> {
    bench.engine.auxiliary_tasks(AuxiliaryFilter { limit: 100, ..AuxiliaryFilter::default() }).await.unwrap()
}

/// The states of a task in the order of its records.
async fn states(bench: &Bench) -> Vec<String> {
    let records = bench.journal.read(|reader| reader.tail(1_000)).await.unwrap();
    records.iter().filter_map(|record| record.kind.strip_prefix("auxiliary.").map(str::to_owned)).collect()
}

async fn ended(bench: &Bench) -> AuxiliaryRow {
    for _ in 0..2_000 {
        match rows(bench).await.pop() {
            Some(row) if row.state.is_terminal() => return row,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    panic!("the task ends")
}

#[tokio::test]
async fn a_task_gives_its_output_with_the_join_of_the_labels() {
    let helper = Helper::new([r#"{"label":"cross"}"#]);
    let bench = bench(&helper).await;
    let done = bench.engine.run_auxiliary(mood()).await.unwrap();
    assert_eq!(done.output.to_value(), json!({"label": "cross"}));
    assert_eq!(done.label.integrity, Integrity::Untrusted);
    assert_eq!(done.label.confidentiality, Confidentiality::Private);
    assert_eq!(done.label.sources.len(), 2);
    let request = &helper.asked()[0];
    assert_eq!(request.purpose, Purpose::Auxiliary(AuxiliaryTaskKind::Classification));
    assert_eq!(request.max_output_tokens, Some(600));
    assert!(request.tools.is_empty());
    assert!(matches!(&request.output, OutputShape::Json { name, .. } if name == "single_label_json"));
    let row = bench.engine.auxiliary_task(done.task_id).await.unwrap();
    assert_eq!((row.state, row.calls, row.owner.as_str()), (AuxiliaryTaskState::Succeeded, 1, "ada"));
    assert_eq!(row.output, Some(json!({"label": "cross"})));
    assert_eq!(row.label, done.label);
    assert_eq!(row.answering.unwrap().model, "small");
    assert_eq!(states(&bench).await, ["pending", "running", "succeeded"]);
    let session = bench.engine.session(row.session_id).await.unwrap();
    assert_eq!((session.owner.as_str(), session.key.as_deref()), ("ada", Some("auxiliary")));
}

#[tokio::test]
async fn a_journal_that_fails_once_at_any_moment_leaves_no_task_under_way() {
    let faults = Arc::new(FailsOnce::default());
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Helper::new([r#"{"label":"cross"}"#; 64]));
    setup.faults = Some(Arc::<FailsOnce>::clone(&faults));
    let bench = setup.start().await;
    bench.engine.run_auxiliary(mood()).await.unwrap();
    for at in 1.. {
        let before = rows(&bench).await.len();
        faults.arm(at);
        let done = bench.engine.run_auxiliary(mood()).await;
        bench.settle().await;
        let has_failed = faults.disarm();
        let rows = rows(&bench).await;
        let states: Vec<_> = rows.iter().take(rows.len() - before).map(|row| row.state).collect();
        match done {
            Ok(_) => assert_eq!(states, [AuxiliaryTaskState::Succeeded], "operation {at}"),
            Err(error) => {
                assert!(has_failed, "operation {at}: {error}");
                assert!(states.iter().all(|state| state.is_terminal()), "operation {at}: {states:?}");
            }
        }
        if !has_failed {
            break;
        }
    }
}

#[tokio::test]
async fn what_nobody_labelled_is_untrusted_and_secrets_stay_here() {
    let helper = Helper::new(["The key is ghp_kT9vQ2mZxR7cLw4BnY8sHd3JfGp5AeUq1o0i."]);
    let bench = bench(&helper).await;
    let mut new = task(
        AuxiliaryTaskKind::Summary,
        json!({"text": "token ghp_kT9vQ2mZxR7cLw4BnY8sHd3JfGp5AeUq1o0i works, says the page"}),
    );
    new.labels.clear();
    let done = bench.engine.run_auxiliary(new).await.unwrap();
    assert_eq!(done.label.integrity, Integrity::Untrusted);
    let AuxiliaryOutput::Summary(summary) = done.output else { panic!("{:?}", done.output) };
    assert!(!summary.summary.contains("ghp_kT9v"), "{}", summary.summary);
    assert!(!helper.asked()[0].messages[1].content.contains("ghp_kT9v"), "{:?}", helper.asked());
}

#[tokio::test]
async fn a_bad_answer_is_refused_once_with_the_reason_and_then_for_good() {
    let helper = Helper::new([r#"{"label":"furious"}"#, r#"{"label":"glad"}"#, "glad", "cross"]);
    let bench = bench(&helper).await;
    let done = bench.engine.run_auxiliary(mood()).await.unwrap();
    assert_eq!(done.output.to_value(), json!({"label": "glad"}));
    assert_eq!(done.usage, Usage::plain(200, 20), "both calls are billed");
    let asked = helper.asked();
    assert!(!asked[0].messages[0].content.contains("refused"));
    assert!(asked[1].messages[0].content.contains("Your last answer was refused: `label` must be one of"));
    assert!(!asked[1].messages[0].content.contains("furious"), "nothing of the answer becomes an instruction");
    let error = bench.engine.run_auxiliary(mood()).await.unwrap_err();
    assert_eq!(error.to_stable().code, "auxiliary_output_invalid");
    assert_eq!(helper.asked().len(), 4);
    let row = &rows(&bench).await[0];
    assert_eq!((row.state, row.calls, row.output.clone()), (AuxiliaryTaskState::Failed, 2, None));
    assert_eq!(row.error.as_ref().unwrap().code, "auxiliary_output_invalid");
}

#[tokio::test]
async fn a_failed_model_and_a_wrong_input_say_so() {
    let bench = bench(&Helper::new([])).await;
    let error = bench.engine.run_auxiliary(mood()).await.unwrap_err();
    assert_eq!(error.to_stable().code, "model_request_rejected");
    let wrong = AuxiliaryInput::read(AuxiliaryTaskKind::Summary, json!({"text": ""})).unwrap_err();
    assert_eq!(wrong.to_stable().code, "auxiliary_input_invalid");
    let mut unchecked = mood();
    if let AuxiliaryInput::Classification(input) = &mut unchecked.input {
        input.labels.clear();
    }
    let error = bench.engine.run_auxiliary(unchecked).await.unwrap_err();
    assert_eq!(error.to_stable().code, "auxiliary_input_invalid", "no surface can go around the bounds");
    assert_eq!(rows(&bench).await.len(), 1, "what was never accepted is on no record");
}

#[tokio::test]
async fn who_stops_waiting_cancels() {
    let helper = Helper::closed([r#"{"label":"glad"}"#]);
    let bench = bench(&helper).await;
    let engine = bench.engine.clone();
    let waiting = tokio::spawn(async move { engine.run_auxiliary(mood()).await });
    helper.was_asked(1).await;
    waiting.abort();
    assert_eq!(ended(&bench).await.state, AuxiliaryTaskState::Cancelled);
    assert_eq!(states(&bench).await, ["pending", "running", "cancelled"]);
    helper.open.send_replace(true);
    assert!(bench.engine.run_auxiliary(mood()).await.is_ok(), "its place is free again");
}

#[tokio::test]
async fn so_many_work_at_once_and_the_others_wait() {
    let helper = Helper::closed([r#"{"label":"glad"}"#; 5]);
    let bench = bench(&helper).await;
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let engine = bench.engine.clone();
            tokio::spawn(async move { engine.run_auxiliary(mood()).await })
        })
        .collect();
    helper.was_asked(2).await;
    while rows(&bench).await.len() < 5 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let running = rows(&bench).await.iter().filter(|row| row.state == AuxiliaryTaskState::Running).count();
    assert_eq!((running, helper.asked().len()), (2, 2));
    helper.open.send_replace(true);
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(helper.asked().len(), 5);
}

#[test]
fn a_dead_process_leaves_cancelled_tasks() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let first = runtime();
    let helper = Helper::closed([]);
    let bench = first.block_on(async {
        let bench = bench(&helper).await;
        let engine = bench.engine.clone();
        tokio::spawn(async move { engine.run_auxiliary(mood()).await });
        helper.was_asked(1).await;
        bench
    });
    let directory = bench.crash(first);
    let second = runtime();
    second.block_on(async {
        let bench = Setup::script("turn = []").start_in(directory).await;
        let row = &rows(&bench).await[0];
        assert_eq!(row.state, AuxiliaryTaskState::Cancelled);
        assert_eq!(row.error.as_ref().unwrap().code, "auxiliary_cancelled");
        assert_eq!(states(&bench).await, ["pending", "running", "cancelled"]);
    });
}

#[tokio::test]
async fn stopping_cancels_what_is_under_way_and_takes_nothing_new() {
    let helper = Helper::closed([]);
    let bench = bench(&helper).await;
    let engine = bench.engine.clone();
    let waiting = tokio::spawn(async move { engine.run_auxiliary(mood()).await });
    helper.was_asked(1).await;
    bench.engine.stop(Duration::from_secs(10)).await;
    assert_eq!(waiting.await.unwrap().unwrap_err().to_stable().code, "auxiliary_cancelled");
    assert!(matches!(bench.engine.run_auxiliary(mood()).await, Err(AgentError::Stopping)));
}

async fn shop(helper: &Arc<Helper>, limit: &str) -> Bench {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::clone(helper) as Arc<dyn ModelProvider>);
    let limits = Limits::from_settings([(BudgetScope::Global, Threshold::Hard, limit)]).unwrap();
    setup.spending = Spending::new(PriceTable::with_own(PRICES, "test").unwrap(), limits);
    setup.start().await
}

#[tokio::test]
async fn tasks_are_paid_for_from_the_same_budgets() {
    let helper = Helper::new([r#"{"label":"sad"}"#, r#"{"label":"glad"}"#]);
    let bench = shop(&helper, "$5.99").await;
    // An answer of 600 tokens could cost six dollars.
    let refused = bench.engine.run_auxiliary(mood()).await;
    assert_eq!(refused.unwrap_err().to_stable().code, "budget_exceeded");
    assert!(helper.asked().is_empty(), "nothing is sent that cannot be paid");
    assert_eq!(ended(&bench).await.state, AuxiliaryTaskState::Failed);
}

#[tokio::test]
async fn bills_of_tasks_are_in_the_usage_report() {
    let helper = Helper::new([r#"{"label":"sad"}"#, r#"{"label":"glad"}"#]);
    let bench = shop(&helper, "$6.10").await;
    let done = bench.engine.run_auxiliary(mood()).await.unwrap();
    assert_eq!((done.cost.micro_usd, done.cost.closes.len()), (MicroUsd(200_000), 2), "{:?}", done.cost);
    let report = bench.engine.usage(Some("ada".into()), UsageGrouping::Model).await.unwrap();
    assert_eq!((report.total.calls, report.total.micro_usd), (2, MicroUsd(200_000)));
    assert_eq!((report.total.tokens.input, report.total.tokens.output), (200, 20));
    let others = bench.engine.usage(Some("eve".into()), UsageGrouping::Model).await.unwrap();
    assert_eq!(others.total.calls, 0);
    let refused = bench.engine.run_auxiliary(mood()).await.unwrap_err();
    assert_eq!(refused.to_stable().code, "budget_exceeded", "what was spent is gone");
}

/// Reads one file per turn and summarises as it is told to.
struct Reader(Arc<Helper>);

#[async_trait]
impl ModelProvider for Reader {
    fn name(&self) -> &str {
        "reader"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { context_tokens: 1_500, ..self.0.describe() }
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let first = match request.purpose {
            Purpose::Auxiliary(_) => return self.0.stream(request).await,
            Purpose::Turn if request.turn > 4 => ModelEvent::TextDelta("all read".into()),
            Purpose::Turn => ModelEvent::ToolCallDelta {
                index: Some(0),
                id: Some("c".into()),
                name: Some("palyra.fs.read".into()),
                arguments: format!("{{\"path\":\"f{}.txt\"}}", request.turn),
            },
        };
        Ok(Box::pin(futures::stream::iter([first, ModelEvent::Finished(StopReason::EndTurn)].map(Ok))))
    }
}

/// The accounts of the summaries of a run that reads four files in a small window.
async fn compacted(helper: &Arc<Helper>) -> (Bench, Vec<Value>) {
    let mut setup = Setup::script("");
    setup.provider = Some(Arc::new(Reader(Arc::clone(helper))));
    let bench = setup.start().await;
    for n in 1..=4 {
        std::fs::write(bench.file(&format!("f{n}.txt")), format!("file {n} {}", "lorem ipsum ".repeat(110))).unwrap();
    }
    let (_, events) = bench.run("read them all").await;
    let accounts = events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::JournalEvent(event) if event.kind == "context.compacted" => {
                Some(event.payload["input"]["compacted"].clone())
            }
            _ => None,
        })
        .collect();
    (bench, accounts)
}

#[tokio::test]
async fn a_run_is_summarised_by_a_task_and_says_how_much_it_saved() {
    let helper = Helper::new(["Files and names: f1.txt"; 4]);
    let (bench, accounts) = compacted(&helper).await;
    let first = &accounts[0];
    assert_eq!(first["method"], "model", "{first}");
    assert_eq!(first["summary"], "Files and names: f1.txt");
    let (before, after) =
        (first["account"]["tokens_before"].as_u64().unwrap(), first["account"]["tokens_after"].as_u64().unwrap());
    assert!(2 * before > 3 * after && after > 0, "{first}");
    let request = &helper.asked()[0];
    for kept in ["Decisions:", "Open tasks:", "Files and names:"] {
        assert!(request.messages[0].content.contains(kept), "{}", request.messages[0].content);
    }
    assert!(request.messages[1].content.contains("lorem ipsum"));
    let row = rows(&bench).await.pop().unwrap();
    assert_eq!(first["account"]["task_id"], json!(row.task_id));
    assert_eq!((row.kind, row.state, row.output), (AuxiliaryTaskKind::Summary, AuxiliaryTaskState::Succeeded, None));
    assert!(row.run_id.is_some());
}

#[tokio::test]
async fn without_a_model_a_summary_is_made_of_what_is_there_and_says_why() {
    let (_, accounts) = compacted(&Helper::new([])).await;
    let first = &accounts[0];
    assert_eq!(first["method"], "extractive", "{first}");
    assert!(first["summary"].as_str().unwrap().contains("## result of palyra.fs.read"), "{first}");
    assert!(first["account"]["why"].as_str().unwrap().starts_with("model_request_rejected: "), "{first}");
}
