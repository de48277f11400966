//! Images that a task refers to: seen by the run's model, or told by one that sees.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use palyra_agent::{AuxiliaryFilter, SessionInput, Submitted};
use palyra_budget::UsageGrouping;
use palyra_common::{AuxiliaryTaskKind, AuxiliaryTaskState, InputMode, RunLifecyclePhase, ToStableError as _};
use palyra_models::{
    ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, Purpose,
    StopReason, Usage,
};
use serde_json::json;

use crate::input_queue::{input, runs_when_over};
use crate::support::{Bench, Setup};

/// The smallest image there is.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01";

/// Whether a model sees, and whether anybody does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    Own,
    Borrowed,
    None,
}

struct Eye {
    sight: Sight,
    asked: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl ModelProvider for Eye {
    fn name(&self) -> &str {
        "eye"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "eye".into(), model: "eye".into(), context_tokens: 32_000, is_language_model: false }
    }
    fn sees_images(&self, _: &str, model: &str) -> bool {
        self.sight == Sight::Own && model == "eye"
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let text = match request.purpose {
            Purpose::Turn => "I see".to_owned(),
            Purpose::Auxiliary(_) if self.sight == Sight::None => {
                return Err(ModelError::new(ModelErrorClass::Permanent, "no model here can see"));
            }
            Purpose::Auxiliary(_) => {
                json!({"observations": ["one red dot"], "answer": "It shows a dot.", "confidence": 0.8}).to_string()
            }
        };
        self.asked.lock().unwrap().push(request);
        let events = [
            ModelEvent::TextDelta(text),
            ModelEvent::Usage(Usage::plain(7, 3)),
            ModelEvent::Finished(StopReason::EndTurn),
        ];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}

async fn bench(sight: Sight) -> (Bench, Arc<Eye>) {
    let eye = Arc::new(Eye { sight, asked: Mutex::default() });
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::clone(&eye) as Arc<dyn ModelProvider>);
    let bench = setup.start().await;
    std::fs::write(bench.file("dot.png"), PNG).unwrap();
    (bench, eye)
}

#[tokio::test]
async fn a_model_that_sees_gets_the_image_itself() {
    let (bench, eye) = bench(Sight::Own).await;
    let (run, _) = bench.run("what is on @file:dot.png?").await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed);
    let asked = eye.asked.lock().unwrap().clone();
    let task = asked[0].messages.iter().find(|message| message.content.contains("what is on")).unwrap();
    assert_eq!(task.parts.len(), 1);
    assert_eq!((task.parts[0].media_type.as_str(), task.parts[0].name.as_deref()), ("image/png", Some("dot.png")));
    assert!(task.content.contains("an image that is attached: image/png"), "{}", task.content);
    let spec = bench.engine.replay(run.run_id).await.unwrap().machine.spec().clone();
    let image = spec.attachments[0].image.unwrap();
    assert_eq!(bench.journal.artifacts().get(&image.digest).unwrap(), PNG, "it is kept beside the journal");
    assert!(spec.attachments[0].text.len() < 200, "and not in it");
}

#[tokio::test]
async fn a_model_that_does_not_see_is_told_by_one_that_does() {
    let (bench, eye) = bench(Sight::Borrowed).await;
    let (run, _) = bench.run("what is on @file:dot.png?").await;
    let asked = eye.asked.lock().unwrap().clone();
    assert_eq!(asked[0].purpose, Purpose::Auxiliary(AuxiliaryTaskKind::Vision));
    assert_eq!(asked[0].messages[1].parts.len(), 1);
    assert_eq!(asked[1].purpose, Purpose::Turn);
    assert!(asked[1].messages.iter().all(|message| message.parts.is_empty()));
    let spec = bench.engine.replay(run.run_id).await.unwrap().machine.spec().clone();
    assert!(spec.attachments[0].text.contains("- one red dot\nIt shows a dot."), "{:?}", spec.attachments);
    let filter = AuxiliaryFilter { run_id: Some(run.run_id), limit: 9, ..AuxiliaryFilter::default() };
    let tasks = bench.engine.auxiliary_tasks(filter).await.unwrap();
    assert_eq!((tasks.len(), tasks[0].state), (1, AuxiliaryTaskState::Succeeded));
    assert_eq!(tasks[0].label, spec.attachments[0].label, "what was seen is no better than what was looked at");
    let usage = bench.engine.usage(None, UsageGrouping::Session).await.unwrap();
    assert_eq!((usage.total.calls, usage.groups.len()), (2, 1), "it is billed to the run's session: {usage:?}");
}

#[tokio::test]
async fn what_nobody_can_look_at_refuses_the_run() {
    let (bench, eye) = bench(Sight::None).await;
    std::fs::write(bench.file("noise.bin"), [0_u8, 159, 146, 150]).unwrap();
    let mut large = PNG.to_vec();
    large.resize(palyra_agent::MAX_IMAGE_BYTES + 1, 0);
    std::fs::write(bench.file("large.png"), large).unwrap();
    for n in 0..5 {
        std::fs::write(bench.file(&format!("{n}.png")), PNG).unwrap();
    }
    for (prompt, why) in [
        ("see @file:dot.png", "no model here can see"),
        ("see @file:noise.bin", "is a binary file"),
        ("see @file:large.png", "has more than 5242880 bytes"),
        ("see @file:0.png @file:1.png @file:2.png @file:3.png @file:4.png", "may refer to 4 images"),
    ] {
        let error = bench.engine.create_run(bench.task(prompt)).await.unwrap_err().to_stable();
        assert_eq!(error.code, "file_reference_invalid", "{prompt}");
        assert!(error.message.contains(why), "{prompt}: {}", error.message);
    }
    assert!(eye.asked.lock().unwrap().is_empty());
}

/// Does not see, and lets nobody wait for the one who does but those who have to. A task that says `hold` is held until it may end.
struct SlowEye {
    looking: tokio::sync::watch::Sender<u32>,
    open: tokio::sync::watch::Sender<bool>,
    may_end: tokio::sync::watch::Sender<bool>,
}

impl SlowEye {
    async fn bench() -> (Bench, Arc<Self>) {
        let shut = || tokio::sync::watch::Sender::new(false);
        let eye = Arc::new(Self { looking: tokio::sync::watch::Sender::new(0), open: shut(), may_end: shut() });
        let mut setup = Setup::script("turn = []");
        setup.provider = Some(Arc::clone(&eye) as Arc<dyn ModelProvider>);
        let bench = setup.start().await;
        std::fs::write(bench.file("dot.png"), PNG).unwrap();
        (bench, eye)
    }

    async fn has_looked(&self, times: u32) {
        let mut looking = self.looking.subscribe();
        tokio::time::timeout(PATIENCE, looking.wait_for(|looking| *looking == times)).await.unwrap().unwrap();
    }
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

#[async_trait]
impl ModelProvider for SlowEye {
    fn name(&self) -> &str {
        "slow"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "slow".into(), model: "slow".into(), context_tokens: 32_000, is_language_model: false }
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let text = match request.purpose {
            Purpose::Turn => {
                if request.messages.iter().any(|message| message.content == "hold") {
                    let _ = self.may_end.subscribe().wait_for(|may| *may).await;
                }
                "done".to_owned()
            }
            Purpose::Auxiliary(_) => {
                self.looking.send_modify(|looking| *looking += 1);
                let _ = self.open.subscribe().wait_for(|open| *open).await;
                json!({"observations": ["a dot"], "answer": "A dot.", "confidence": 0.8}).to_string()
            }
        };
        let events = [ModelEvent::TextDelta(text), ModelEvent::Finished(StopReason::EndTurn)];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}

#[tokio::test]
async fn a_session_can_be_used_while_an_image_for_it_is_looked_at() {
    let (bench, eye) = SlowEye::bench().await;
    let (first, _) = bench.run("hello").await;
    let session_id = first.session_id;
    let new = palyra_agent::NewRun { session_id: Some(session_id), ..bench.task("what is on @file:dot.png?") };
    let engine = bench.engine.clone();
    let creating = tokio::spawn(async move { engine.create_run(new).await });
    eye.has_looked(1).await;
    let renamed = bench.engine.rename_session(session_id, "meanwhile".into(), "local", None);
    let row = tokio::time::timeout(PATIENCE, renamed).await.expect("the session is not locked").unwrap();
    assert_eq!(row.title, "meanwhile");
    assert!(!creating.is_finished());
    eye.open.send_replace(true);
    let run = creating.await.unwrap().unwrap();
    let (run, _) = bench.finish(run.run_id).await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed);
    assert_eq!(*eye.looking.borrow(), 1, "it is looked at once");
    let spec = bench.engine.replay(run.run_id).await.unwrap().machine.spec().clone();
    assert!(spec.attachments[0].text.contains("- a dot\nA dot."), "{:?}", spec.attachments);
}

#[tokio::test]
async fn a_session_can_be_used_while_an_image_is_looked_at_for_what_waits_in_it() {
    let (bench, eye) = SlowEye::bench().await;
    let (session, _) = bench.engine.resolve_session("ada", "s", None).await.unwrap();
    let session_id = session.session_id;
    let workspace = Some(bench.directory.path().join("work").display().to_string());
    let held = SessionInput { workspace, ..input("hold", InputMode::FollowUp, None) };
    assert!(matches!(bench.engine.submit_input(session_id, held).await.unwrap(), Submitted::Started(_)));
    let submit = async |text: &str, id: &str| {
        let submitted = bench.engine.submit_input(session_id, input(text, InputMode::FollowUp, Some(id)));
        tokio::time::timeout(PATIENCE, submitted).await.expect("the session is not locked").unwrap()
    };
    let queued = |id: &str, position| Submitted::Queued { input_id: id.into(), position };
    assert_eq!(submit("what is on @file:dot.png?", "a").await, queued("a", 1));
    assert_eq!(submit("and on @file:dot.png?", "b").await, queued("b", 2));
    eye.may_end.send_replace(true);
    eye.has_looked(1).await;

    // The model that looks hangs; nobody else does.
    let renamed = bench.engine.rename_session(session_id, "meanwhile".into(), "ada", None);
    assert_eq!(
        tokio::time::timeout(PATIENCE, renamed).await.expect("the session is not locked").unwrap().title,
        "meanwhile"
    );
    assert_eq!(submit("and more", "c").await, queued("c", 3));
    assert_eq!(*eye.looking.borrow(), 1, "one look at a time");
    let withdrawn = bench.engine.withdraw_input(session_id, "a", "ada");
    tokio::time::timeout(PATIENCE, withdrawn).await.expect("the session is not locked").unwrap();
    eye.open.send_replace(true);

    let runs = runs_when_over(&bench, session_id, 3).await;
    let prompts: Vec<_> = runs.iter().map(|run| run.prompt.as_str()).collect();
    assert_eq!(prompts, ["hold", "and on @file:dot.png?", "and more"], "what was taken back begins no run");
    assert_eq!(*eye.looking.borrow(), 2, "once for what was taken back, once for what began a run");
    let spec = bench.engine.replay(runs[1].run_id).await.unwrap().machine.spec().clone();
    assert!(spec.attachments[0].text.contains("- a dot\nA dot."), "{:?}", spec.attachments);
}
