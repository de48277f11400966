//! How calls get on, as those who follow a run are told: beside the tape and never on it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use palyra_agent::Followed;
use palyra_common::{CallProgress, Label, MODEL_CALL, RunStreamEvent};
use palyra_models::{
    AnswerEnd, Answering, Attempt, ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream,
    ProviderInfo, StopReason,
};
use palyra_tools::{CallResource, Invocation, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::support::Setup;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Tells how it gets on very often, then ends when the test lets it.
struct Talkative {
    declaration: ToolDeclaration,
    may_end: Arc<Semaphore>,
}

#[async_trait]
impl Tool for Talkative {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }
    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("test"))
    }
    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        for step in 0..50_000_u32 {
            invocation.progress.step(Some((step / 500) as u8), "reading pages");
            invocation.progress.output(format!("line {step}\n").as_bytes());
        }
        let _permit = self.may_end.acquire().await;
        invocation.progress.step(Some(100), "done");
        Ok(ToolOutput::text("the result", Label::system()))
    }
}

fn setup(may_end: &Arc<Semaphore>) -> Setup {
    let mut setup =
        Setup::script("[[turn]]\n[[turn.call]]\ntool = \"test.once\"\narguments = {}\n[[turn]]\ntext = \"finished\"\n");
    let declaration = ToolDeclaration::of::<Nothing>(ToolName::new("test.once").unwrap(), "test", "test");
    setup.tools = vec![Arc::new(Talkative { declaration, may_end: Arc::clone(may_end) })];
    setup
}

#[tokio::test]
async fn those_who_follow_are_told_and_the_tape_knows_nothing_of_it() {
    let may_end = Arc::new(Semaphore::new(0));
    let bench = setup(&may_end).start().await;
    let run = bench.engine.create_run(bench.task("work")).await.unwrap();
    let mut follower = bench.engine.follow(run.run_id, 1).await.unwrap();
    let (mut events, mut told): (Vec<RunStreamEvent>, Vec<CallProgress>) = (Vec::new(), Vec::new());
    let follow = async {
        while let Some(followed) = follower.next_with_progress().await.unwrap() {
            match followed {
                Followed::Events(more) => events.extend(more.iter().map(|event| (**event).clone())),
                Followed::Progress(news) => {
                    for event in news {
                        assert_eq!(event.seq, events.last().unwrap().seq, "it has no position of its own");
                        told.push(event.progress().unwrap().clone());
                    }
                    // The tool ends once somebody heard of it, however slow the machine is.
                    if told.last().is_some_and(|progress| progress.percent == Some(99)) {
                        may_end.add_permits(1);
                    }
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), follow).await.expect("the run goes on");
    let last = told.iter().rfind(|progress| progress.percent == Some(99)).unwrap();
    assert_eq!((last.call_id.as_str(), last.message.as_str()), ("t1c1", "reading pages"));
    assert!(told.iter().any(|progress| progress.output.contains("line ")), "{told:?}");
    assert!(told.len() < 50, "fifty thousand reports are not passed on: {}", told.len());

    let (_, tape) = bench.finish(run.run_id).await;
    assert_eq!(tape, events, "who asks for progress gets the same tape");
    assert!(tape.iter().all(|event| event.progress().is_none()));
    let stored = bench.engine.tape(run.run_id, 1, 1_000).await.unwrap();
    assert!(!serde_json::to_string(&stored).unwrap().contains("reading pages"), "nothing of it is journaled");
}

#[tokio::test]
async fn a_tool_that_nobody_listens_to_is_not_held_up() {
    let may_end = Arc::new(Semaphore::new(1));
    let bench = setup(&may_end).start().await;
    let (run, _) = bench.run("work").await;
    assert_eq!(run.answer.as_deref(), Some("finished"));
}

/// Fails twice in a row as a router does, and answers when the test lets it.
struct Limited {
    may_answer: Arc<Semaphore>,
}

#[async_trait]
impl ModelProvider for Limited {
    fn name(&self) -> &str {
        "limited"
    }
    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "limited".into(), model: "m".into(), context_tokens: 100_000, is_language_model: true }
    }
    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        let asked = Answering { provider: "work".into(), model: "large".into(), credential: None };
        let error = ModelError::new(ModelErrorClass::RateLimit, "too many requests");
        let failed = |wait_ms| {
            ModelEvent::Attempted(Attempt {
                asked: asked.clone(),
                error: error.clone(),
                wait_ms,
                usage: None,
                end: AnswerEnd::Missing,
            })
        };
        let may_answer = Arc::clone(&self.may_answer);
        let answer = futures::stream::once(async move {
            let _permit = may_answer.acquire().await;
            Ok(ModelEvent::TextDelta("here".into()))
        });
        let before = futures::stream::iter([
            ModelEvent::Answering(asked.clone()),
            failed(0),
            failed(11_600),
            ModelEvent::Answering(asked),
        ]);
        let end = futures::stream::iter([Ok(ModelEvent::Finished(StopReason::EndTurn))]);
        Ok(before.map(Ok).chain(answer).chain(end).boxed())
    }
}

#[tokio::test]
async fn a_model_call_that_failed_and_is_made_again_is_told_while_it_waits() {
    let may_answer = Arc::new(Semaphore::new(0));
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::new(Limited { may_answer: Arc::clone(&may_answer) }));
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("work")).await.unwrap();
    let mut follower = bench.engine.follow(run.run_id, 1).await.unwrap();
    let mut told: Vec<CallProgress> = Vec::new();
    let follow = async {
        while let Some(followed) = follower.next_with_progress().await.unwrap() {
            if let Followed::Progress(news) = followed {
                told.extend(news.iter().filter_map(|event| event.progress().cloned()));
                may_answer.add_permits(1);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), follow).await.expect("the run goes on");
    let told: Vec<_> = told.iter().map(|told| (told.call_id.as_str(), told.message.as_str())).collect();
    let expected = [
        "work/large: rate limit; retrying now (attempt 2): too many requests",
        "work/large: rate limit; retrying in 12 s (attempt 3): too many requests",
    ];
    assert_eq!(told, expected.map(|message| (MODEL_CALL, message)));
}
