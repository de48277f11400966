//! Runs that stopped for want of their model and go on with another.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_agent::{NewRun, Resumption};
use palyra_budget::UsageGrouping;
use palyra_common::{RunLifecyclePhase, TerminationReason, ToStableError as _};
use palyra_models::{
    ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, StopReason, Usage,
};

use crate::support::{Setup, actor};

/// Has one model, which is called `right`.
struct Particular;

#[async_trait]
impl ModelProvider for Particular {
    fn name(&self) -> &str {
        "particular"
    }
    fn describe(&self) -> ProviderInfo {
        self.describe_for("", None)
    }
    fn describe_for(&self, _: &str, model: Option<&str>) -> ProviderInfo {
        ProviderInfo {
            name: "particular".into(),
            model: model.unwrap_or_default().to_owned(),
            context_tokens: if model == Some("right") { 64_000 } else { 32_000 },
            is_language_model: false,
        }
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        if request.model != "right" {
            return Err(ModelError::new(ModelErrorClass::Permanent, format!("there is no `{}`", request.model)));
        }
        let events = [
            ModelEvent::TextDelta("done".into()),
            ModelEvent::Usage(Usage::plain(7, 3)),
            ModelEvent::Finished(StopReason::EndTurn),
        ];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}

#[tokio::test]
async fn a_run_with_a_wrong_model_goes_on_with_a_right_one() {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::new(Particular));
    let bench = setup.start().await;
    let (failed, _) = {
        let new = NewRun { model: Some("rihgt".into()), ..bench.task("do it") };
        let run = bench.engine.create_run(new).await.unwrap();
        bench.finish(run.run_id).await
    };
    assert_eq!((failed.reason, failed.model.as_str()), (Some(TerminationReason::ProviderError), "particular/rihgt"));

    // As it was, it fails as it did.
    bench.engine.resume(failed.run_id, &actor("local"), Resumption::default()).await.unwrap();
    let (again, _) = bench.finish(failed.run_id).await;
    assert_eq!(again.reason, Some(TerminationReason::ProviderError));

    let other = Resumption { model: Some("right".into()), over_budget: None };
    bench.engine.resume(failed.run_id, &actor("local"), other.clone()).await.unwrap();
    let (done, _) = bench.finish(failed.run_id).await;
    assert_eq!((done.phase, done.model.as_str()), (RunLifecyclePhase::Completed, "particular/right"));
    let replayed = bench.engine.replay(failed.run_id).await.unwrap();
    assert_eq!((replayed.difference, replayed.machine.spec().model.context_tokens), (None, 64_000));
    let usage = bench.engine.usage(None, UsageGrouping::Model).await.unwrap();
    assert!(usage.groups.iter().all(|group| group.key.ends_with("right")), "{usage:?}");

    let late = bench.engine.resume(failed.run_id, &actor("local"), other).await.unwrap_err();
    assert_eq!(late.to_stable().code, "run_wrong_phase");
}

#[tokio::test]
async fn a_model_that_chooses_itself_is_shown_by_its_provider_alone() {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::new(Particular));
    let bench = setup.start().await;
    let (run, _) = bench.run("do it").await;
    assert_eq!(run.model, "particular");
}
