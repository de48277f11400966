//! Summaries that a model writes, of sessions and of runs: what they keep, what they cost, and how they are taken back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use palyra_agent::context::Item;
use palyra_agent::{AuxiliaryFilter, NewRun, Resumption, SessionFilter};
use palyra_common::{
    AuxiliaryTaskKind, AuxiliaryTaskState, Integrity, RunId, RunLifecyclePhase, SessionId, TerminationReason,
    ToStableError as _,
};
use palyra_models::{
    ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, Purpose,
    StopReason, Usage,
};

use crate::support::{Bench, Setup, actor};

const SUMMARY: &str = "Decisions:\nport 7070\nOpen tasks:\nthe tests";

/// Says its number to every task; summarises, or cannot.
struct Writer {
    asked: Mutex<Vec<ModelRequest>>,
    can_summarise: AtomicBool,
}

#[async_trait]
impl ModelProvider for Writer {
    fn name(&self) -> &str {
        "writer"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "writer".into(), model: "w".into(), context_tokens: 32_000, is_language_model: true }
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let text = match request.purpose {
            Purpose::Turn => format!("Answer {}. And more of it.", self.asked.lock().unwrap().len()),
            Purpose::Auxiliary(_) if self.can_summarise.load(Ordering::SeqCst) => SUMMARY.to_owned(),
            Purpose::Auxiliary(_) => {
                return Err(ModelError::new(ModelErrorClass::Permanent, "this model does not summarise"));
            }
        };
        self.asked.lock().unwrap().push(request);
        let events = [
            ModelEvent::TextDelta(text),
            ModelEvent::Usage(Usage::plain(50, 5)),
            ModelEvent::Finished(StopReason::EndTurn),
        ];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}

/// A session with four exchanges.
async fn conversation() -> (Bench, Arc<Writer>, SessionId) {
    let writer = Arc::new(Writer { asked: Mutex::default(), can_summarise: AtomicBool::new(true) });
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::clone(&writer) as Arc<dyn ModelProvider>);
    let bench = setup.start().await;
    let mut session = None;
    for n in 0..4 {
        let new = NewRun { session_id: session, ..bench.task(&format!("Ask {n}. Please do.")) };
        let run = bench.engine.create_run(new).await.unwrap();
        bench.finish(run.run_id).await;
        session = Some(run.session_id);
    }
    (bench, writer, session.unwrap())
}

#[tokio::test]
async fn a_model_summarises_what_was_answered_and_nobody_pays_for_looking() {
    let (bench, writer, session) = conversation().await;
    let before = writer.asked.lock().unwrap().len();
    let shown = bench.engine.compact_preview(session, Some(1)).await.unwrap();
    assert_eq!(shown.summary.method, "extractive");
    assert!(shown.note.unwrap().contains("a model writes what was answered when it is applied"));
    assert_eq!(writer.asked.lock().unwrap().len(), before, "looking asks nobody");

    let (_, applied) = bench.engine.compact_apply(session, Some(1), "local", None).await.unwrap();
    assert_eq!((applied.summary.method.as_str(), applied.summary.answered.as_str()), ("model", SUMMARY));
    assert!(applied.note.is_none() && applied.summary.why.is_none(), "{applied:?}");
    assert_eq!(applied.summary.asked, "- Ask 0.\n- Ask 1.\n- Ask 2.\n", "the words of who asked stay theirs");
    assert!(applied.summary.label.integrity <= Integrity::ToolTrusted, "{:?}", applied.summary.label);
    let asked = writer.asked.lock().unwrap().last().cloned().unwrap();
    assert_eq!(asked.purpose, Purpose::Auxiliary(AuxiliaryTaskKind::Summary));
    let text = &asked.messages.last().unwrap().content;
    assert!(text.contains("Answer 2. And more of it.") && !text.contains("Answer 3."), "{text}");
    let filter = AuxiliaryFilter { session_id: Some(session), limit: 9, ..AuxiliaryFilter::default() };
    let tasks = bench.engine.auxiliary_tasks(filter).await.unwrap();
    assert_eq!((tasks.len(), tasks[0].state), (1, AuxiliaryTaskState::Succeeded));
    assert_eq!((Some(tasks[0].task_id), tasks[0].usage.output_tokens), (applied.summary.task_id, 5), "it is booked");

    // The next run is told the summary, and the originals again once it is taken back.
    let run = bench.engine.create_run(NewRun { session_id: Some(session), ..bench.task("Go on") }).await.unwrap();
    bench.finish(run.run_id).await;
    let told = writer.asked.lock().unwrap().last().cloned().unwrap();
    let heard: Vec<_> = told.messages.iter().map(|message| message.content.as_str()).collect();
    assert!(heard.iter().any(|text| text.contains("What came of it, summarised:") && text.contains("port 7070")));
    bench.engine.compact_revert(session, "local", None).await.unwrap();
    let run = bench.engine.create_run(NewRun { session_id: Some(session), ..bench.task("Go on") }).await.unwrap();
    bench.finish(run.run_id).await;
    let told = writer.asked.lock().unwrap().last().cloned().unwrap();
    assert!(told.messages.iter().any(|message| message.content.contains("Answer 0. And more of it.")));
}

#[tokio::test]
async fn a_model_that_cannot_leaves_first_sentences_and_it_is_said() {
    let (bench, writer, session) = conversation().await;
    writer.can_summarise.store(false, Ordering::SeqCst);
    let (_, applied) = bench.engine.compact_apply(session, Some(1), "local", None).await.unwrap();
    assert_eq!(applied.summary.method, "extractive");
    assert_eq!(applied.summary.answered, "- Answer 0.\n- Answer 1.\n- Answer 2.\n");
    assert!(applied.summary.why.unwrap().contains("this model does not summarise"));
    assert!(applied.note.unwrap().contains("no model wrote it"));
    let listed = bench.engine.sessions(SessionFilter { limit: 9, ..SessionFilter::default() }).await.unwrap();
    assert_eq!(listed.len(), 1, "the task belongs to the session");
}

const FILES: u32 = 6;

/// When a reader cannot go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Its window is said to be full before it is, and then it is gone.
    SmallerThanSaid,
    /// It is gone as soon as something was summarised.
    GoneAfterSummary,
    /// Never.
    Over,
}

/// Reads file after file, with some trouble.
struct Reader {
    trouble: Mutex<Trouble>,
    asked: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl ModelProvider for Reader {
    fn name(&self) -> &str {
        "reader"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "reader".into(), model: "reader".into(), context_tokens: 3_000, is_language_model: false }
    }
    fn tries_again(&self) -> bool {
        true
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let summarised = request.messages.iter().any(|message| message.content.starts_with("Summary of"));
        let trouble = *self.trouble.lock().unwrap();
        let refuse = |class| Err(ModelError::new(class, "not now"));
        let first = match request.purpose {
            Purpose::Auxiliary(_) => ModelEvent::TextDelta("files were read".into()),
            Purpose::Turn if summarised && trouble != Trouble::Over => return refuse(ModelErrorClass::Permanent),
            Purpose::Turn if request.turn > FILES && trouble == Trouble::SmallerThanSaid => {
                return refuse(ModelErrorClass::ContextTooLong);
            }
            Purpose::Turn if request.turn > FILES => ModelEvent::TextDelta("all read".into()),
            Purpose::Turn => ModelEvent::ToolCallDelta {
                index: Some(0),
                id: Some("c".into()),
                name: Some("palyra.fs.read".into()),
                arguments: format!("{{\"path\":\"f{}.txt\"}}", request.turn),
            },
        };
        self.asked.lock().unwrap().push(request);
        let events = [first, ModelEvent::Finished(StopReason::EndTurn)];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}

/// A run that stopped for want of its model right after something of its context was summarised.
async fn stopped(trouble: Trouble, compact_at_percent: u32) -> (Bench, Arc<Reader>, RunId) {
    let reader = Arc::new(Reader { trouble: Mutex::new(trouble), asked: Mutex::default() });
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::clone(&reader) as Arc<dyn ModelProvider>);
    setup.limits.compact_at_percent = compact_at_percent;
    let bench = setup.start().await;
    for n in 1..=FILES {
        std::fs::write(bench.file(&format!("f{n}.txt")), format!("{n} {}", "lorem ipsum ".repeat(70))).unwrap();
    }
    let (run, _) = bench.run("read them all").await;
    assert_eq!(run.reason, Some(TerminationReason::ProviderError), "{run:?}");
    let items = bench.engine.replay(run.run_id).await.unwrap().machine.items().to_vec();
    assert!(matches!(items[1], Item::Summary { .. }), "{items:?}");
    (bench, reader, run.run_id)
}

/// Lets the run go on without trouble, to its end.
async fn completed(bench: &Bench, reader: &Reader, run_id: RunId) {
    *reader.trouble.lock().unwrap() = Trouble::Over;
    bench.engine.resume(run_id, &actor("local"), Resumption::default()).await.unwrap();
    for _ in 0..2_000 {
        if bench.engine.run(run_id).await.unwrap().phase == RunLifecyclePhase::Completed {
            assert_eq!(bench.engine.replay(run_id).await.unwrap().difference, None);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the run does not end: {:?}", bench.engine.run(run_id).await.unwrap());
}

#[tokio::test]
async fn a_run_that_may_go_on_gets_its_originals_back_and_sees_them() {
    let (bench, reader, run_id) = stopped(Trouble::SmallerThanSaid, 80).await;
    let context = bench.engine.context(run_id, None).await.unwrap();
    let originals: Vec<_> = context.originals.iter().map(|segment| segment.kind.as_str()).collect();
    assert!(originals.starts_with(&["assistant", "tool_result"]), "{originals:?}");
    assert!(context.originals[1].text.contains("1 lorem ipsum"), "{:?}", context.originals[1]);

    bench.engine.revert_run_compaction(run_id, "local").await.unwrap();
    let replayed = bench.engine.replay(run_id).await.unwrap();
    assert_eq!(replayed.difference, None);
    assert_eq!(replayed.machine.phase(), RunLifecyclePhase::Failed, "it has not gone on yet");
    assert!(!replayed.machine.items().iter().any(|item| matches!(item, Item::Summary { .. })));
    let again = bench.engine.revert_run_compaction(run_id, "local").await.unwrap_err().to_stable();
    assert!(again.message.contains("nothing of its context is summarised"), "{}", again.message);

    completed(&bench, &reader, run_id).await;
    let last = reader.asked.lock().unwrap().last().cloned().unwrap();
    assert!(last.messages.iter().any(|message| message.content.contains("1 lorem ipsum")), "{last:?}");
    assert!(!last.messages.iter().any(|message| message.content.starts_with("Summary of")));
    let context = bench.engine.context(run_id, None).await.unwrap();
    assert!(context.is_exact && context.originals.is_empty());
    // The parts add up to what the request is taken for, without tools: this planner is no language model and reads none.
    let last = palyra_models::ModelRequest { tools: Vec::new().into(), ..last };
    let parts: u64 = context.segments.iter().map(|segment| u64::from(segment.tokens)).sum();
    assert_eq!(parts, palyra_models::TokenCounter::new(&last.model).request(&last).tokens);
    let over = bench.engine.revert_run_compaction(run_id, "local").await.unwrap_err().to_stable();
    assert_eq!(over.code, "run_wrong_phase", "a run that is over has no next turn");
}

#[tokio::test]
async fn originals_that_do_not_fit_stay_behind_their_summary() {
    let (bench, reader, run_id) = stopped(Trouble::GoneAfterSummary, 40).await;
    let refused = bench.engine.revert_run_compaction(run_id, "local").await.unwrap_err().to_stable();
    assert_eq!(refused.code, "run_wrong_phase");
    assert!(refused.message.contains("does not fit the model's window any more"), "{}", refused.message);
    completed(&bench, &reader, run_id).await;
    let (run, _) = bench.run("read them all").await;
    let nothing = bench.engine.revert_run_compaction(run.run_id, "local").await;
    assert!(nothing.is_err(), "it is over");
}
