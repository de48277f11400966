//! Hooks that do what a test wants, and remember what they were told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use palyra_agent::{
    HookAnswer, HookBindingRecord, HookFailure, HookOccurrence, HookResult, HookRunner, HookSaid, HooksAnswered,
};
use palyra_common::{HookDecision, HookEvent, RunStreamBody, RunStreamEvent};

use crate::support::{Bench, Setup};

/// What one hook does.
#[derive(Clone)]
pub(crate) enum Does {
    Say(HookDecision),
    Propose(&'static str),
    Fail(HookFailure),
    Panic,
    Hang,
    /// Says nothing until [`Hooks::open`].
    Wait,
}

/// Hooks by the ids of their bindings; whoever is not named has nothing to say.
#[derive(Default)]
pub(crate) struct Hooks {
    does: HashMap<String, Does>,
    told: Mutex<Vec<(String, HookOccurrence)>>,
    calls: tokio::sync::watch::Sender<usize>,
    open: tokio::sync::watch::Sender<bool>,
}

impl Hooks {
    pub(crate) fn doing(does: &[(&str, Does)]) -> Arc<Self> {
        let does = does.iter().map(|(id, does)| ((*id).to_owned(), does.clone())).collect();
        Arc::new(Self { does, ..Self::default() })
    }

    /// Who was asked about what, in order.
    pub(crate) fn told(&self) -> Vec<(String, HookOccurrence)> {
        self.told.lock().unwrap().clone()
    }

    /// Lets those that wait go on.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until so many were asked.
    pub(crate) async fn reached(&self, count: usize) {
        let mut calls = self.calls.subscribe();
        let arrived = calls.wait_for(|calls| *calls >= count);
        tokio::time::timeout(Duration::from_secs(20), arrived).await.expect("the hook is asked").unwrap();
    }
}

#[async_trait]
impl HookRunner for Hooks {
    async fn run(
        &self,
        binding: &HookBindingRecord,
        occurrence: &HookOccurrence,
        _: Duration,
    ) -> Result<HookAnswer, HookFailure> {
        self.told.lock().unwrap().push((binding.id.clone(), occurrence.clone()));
        self.calls.send_modify(|calls| *calls += 1);
        let reason = format!("{} says so", binding.id);
        match self.does.get(&binding.id) {
            None => Ok(HookAnswer::new(HookDecision::Continue, "")),
            Some(Does::Say(decision)) => Ok(HookAnswer::new(*decision, reason)),
            Some(Does::Propose(text)) => {
                Ok(HookAnswer { decision: HookDecision::TransformPreview, reason, text: Some((*text).to_owned()) })
            }
            Some(Does::Fail(failure)) => Err(failure.clone()),
            Some(Does::Panic) => panic!("on purpose"),
            Some(Does::Hang) => std::future::pending().await,
            Some(Does::Wait) => {
                self.open.subscribe().wait_for(|open| *open).await.unwrap();
                Ok(HookAnswer::new(HookDecision::Continue, reason))
            }
        }
    }
}

pub(crate) fn binding(id: &str, event: HookEvent) -> HookBindingRecord {
    HookBindingRecord::new(id, event, format!("acme.{id}"))
}

/// The same with a deadline that a hanging hook misses soon.
pub(crate) fn hasty(id: &str, event: HookEvent) -> HookBindingRecord {
    let mut binding = binding(id, event);
    binding.deadline_ms = 30;
    binding
}

impl Setup {
    pub(crate) fn hooks(mut self, hooks: &Arc<Hooks>) -> Self {
        self.hooks = Arc::clone(hooks) as Arc<dyn HookRunner>;
        self
    }
}

impl Bench {
    pub(crate) async fn bind(&self, bindings: Vec<HookBindingRecord>) {
        for binding in bindings {
            self.engine.bind_hook(binding, "admin").await.unwrap();
        }
    }

    /// Waits until the tape holds what hooks said about the end of the run.
    pub(crate) async fn noted(&self, run_id: palyra_common::RunId) -> Vec<RunStreamEvent> {
        let waiting = async {
            loop {
                let events = self.engine.tape(run_id, 1, usize::MAX).await.unwrap();
                if !of_kind(&events, "hooks.noted").is_empty() {
                    return events;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("hooks are told")
    }
}

/// Payloads of the journal events of a kind.
pub(crate) fn of_kind(events: &[RunStreamEvent], kind: &str) -> Vec<serde_json::Value> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::JournalEvent(event) if event.kind == kind => Some(event.payload.clone()),
            _ => None,
        })
        .collect()
}

/// What hooks said on a tape, in order.
pub(crate) fn results(events: &[RunStreamEvent]) -> Vec<HookResult> {
    let answered =
        of_kind(events, "hooks.answered").into_iter().map(|payload| payload["input"]["hooks_answered"].clone());
    answered
        .map(|payload| serde_json::from_value::<HooksAnswered>(payload).unwrap())
        .flat_map(|answered| answered.results)
        .collect()
}

pub(crate) fn failure(result: &HookResult) -> HookFailure {
    match &result.said {
        HookSaid::Failed(failure) => failure.clone(),
        HookSaid::Answered(answer) => panic!("it answered: {answer:?}"),
    }
}
