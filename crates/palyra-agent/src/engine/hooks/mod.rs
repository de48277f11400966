//! Running hooks: the engine's side of what the machine asks for.
//!
//! `ask` asks the hooks of one occurrence in order, each within its deadline; `payload` says what they are told; `book` holds the bindings; `after_run` tells
//! hooks that a run is over, also after a crash; `events` dispatches what belongs to no run.
//!
//! A hook is asked at least once. It has no part in the commit of what it decides: its answer is journaled first, then it counts.

mod after_run;
mod ask;
mod book;
mod events;
mod payload;

use std::collections::HashMap;
use std::sync::Arc;

use palyra_common::RunLifecycleHookPhase;
use tokio::task::{AbortHandle, Id, JoinSet};
use tracing::Instrument as _;

pub(super) use after_run::AfterRun;
pub(super) use book::HookBook;
pub use events::HookDispatch;

use super::Shared;
use crate::hooks::{HookResult, HooksAnswered};
use crate::machine::{Input, Machine, said_by};

/// What the machine asks for.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) occurrence_id: String,
    pub(super) phase: RunLifecycleHookPhase,
    pub(super) call_id: Option<String>,
    pub(super) hooks: Vec<String>,
}

/// The occurrences of one run whose hooks are being asked.
#[derive(Default)]
pub(super) struct HookCalls {
    tasks: JoinSet<HooksAnswered>,
    running: HashMap<Id, (AbortHandle, HooksAnswered)>,
}

impl HookCalls {
    /// Begins to ask. Whatever cannot be asked is missing in the answer, which the machine takes for a failure.
    pub(super) fn begin(&mut self, shared: &Arc<Shared>, machine: &Machine, request: &Request) {
        let unanswered = request.answered(machine, Vec::new());
        let asking = ask(shared, machine, request);
        let span = tracing::error_span!(
            "hooks",
            occurrence_id = unanswered.occurrence_id.as_str(),
            phase = unanswered.phase.as_str(),
        );
        let mut answer = unanswered.clone();
        let handle = self.tasks.spawn(
            async move {
                answer.results = asking.await;
                answer
            }
            .instrument(span),
        );
        self.running.insert(handle.id(), (handle, unanswered));
    }

    /// Stops asking; nothing is reported.
    pub(super) fn stop(&mut self, occurrence_id: &str) {
        self.running.retain(|_, (handle, request)| {
            let stopped = request.occurrence_id == occurrence_id;
            if stopped {
                handle.abort();
            }
            !stopped
        });
    }

    /// The next occurrence whose hooks have all answered.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            let (id, answered) = match self.tasks.join_next_with_id().await {
                Some(Ok((id, answered))) => (id, Some(answered)),
                Some(Err(error)) => (error.id(), None),
                None => return std::future::pending().await,
            };
            // What was stopped is not waited for.
            if let Some((_, unanswered)) = self.running.remove(&id) {
                return Input::HooksAnswered(Box::new(answered.unwrap_or(unanswered)));
            }
        }
    }
}

impl Request {
    pub(super) fn answered(&self, machine: &Machine, results: Vec<HookResult>) -> HooksAnswered {
        let about = payload::of(machine, self).map_or_else(|| machine.seen(), |(_, label)| label);
        HooksAnswered {
            occurrence_id: self.occurrence_id.clone(),
            phase: self.phase,
            call_id: self.call_id.clone(),
            results,
            label: said_by(&self.hooks, &about),
        }
    }
}

/// Asks the hooks of a request.
fn ask(
    shared: &Arc<Shared>,
    machine: &Machine,
    request: &Request,
) -> impl Future<Output = Vec<HookResult>> + Send + use<> {
    let bindings = request
        .hooks
        .iter()
        .filter_map(|id| machine.hooks().iter().find(|binding| binding.id == *id).cloned())
        .collect();
    let occurrence = payload::occurrence(machine, request, shared.options.clock.now());
    let options = &shared.options;
    let (runner, safety) = (Arc::clone(&options.hooks), options.safety.clone());
    async move {
        match occurrence {
            Some(occurrence) => ask::all(runner.as_ref(), &safety, bindings, occurrence).await,
            // The step is gone, so nobody will look at the answer.
            None => Vec::new(),
        }
    }
}
