//! Images that a task refers to: seen by the run's model, or told by one that sees.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use palyra_agent::AuxiliaryFilter;
use palyra_budget::UsageGrouping;
use palyra_common::{AuxiliaryTaskKind, AuxiliaryTaskState, RunLifecyclePhase, ToStableError as _};
use palyra_models::{
    ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, Purpose,
    StopReason, Usage,
};
use serde_json::json;

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
