//! Events that belong to no run: of the gateway and of skills.
//!
//! The occurrence is recorded, its hooks are asked in order, and what they said is recorded. Nothing waits for their consent, so an answer other than
//! `continue` or `annotate` counts as the hook's failure. Without a binding nothing is recorded. An event is not dispatched again after a crash.

use std::sync::Arc;

use palyra_common::Label;
use palyra_journal::NewRecord;
use serde::{Deserialize, Serialize};

use super::ask;
use crate::engine::Engine;
use crate::error::AgentError;
use crate::hooks::{HookBindingRecord, HookOccurrence, HookResult};
use crate::machine::said_by;

/// Kind of the record of an occurrence.
const OCCURRED: &str = "hook_event.occurred";
/// Kind of the record of what hooks said about it.
const ANSWERED: &str = "hook_event.answered";

/// What came of dispatching an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookDispatch {
    /// The occurrence.
    pub occurrence_id: String,
    /// What each hook said, in the order in which they were asked.
    pub results: Vec<HookResult>,
    /// Label of everything that was said.
    pub label: Label,
}

impl Engine {
    /// Tells hooks of something that belongs to no run. Returns when all have answered or missed their deadline.
    ///
    /// # Errors
    /// When the event belongs to a run, or the journal cannot take the records.
    pub async fn dispatch_event(&self, occurrence: HookOccurrence) -> Result<HookDispatch, AgentError> {
        if occurrence.event.run_phase().is_some() {
            return Err(AgentError::HookEventInvalid(occurrence.event));
        }
        let bound = self.shared.hooks.current();
        let bindings: Vec<HookBindingRecord> =
            bound.of_events.iter().filter(|binding| binding.event == occurrence.event).cloned().collect();
        let hooks: Vec<String> = bindings.iter().map(|binding| binding.id.clone()).collect();
        let mut dispatch = HookDispatch {
            occurrence_id: occurrence.id.clone(),
            results: Vec::new(),
            label: said_by(&hooks, &occurrence.label),
        };
        if bindings.is_empty() {
            return Ok(dispatch);
        }
        self.to_the_end(|engine| async move {
            let mut occurrence = occurrence;
            let options = &engine.shared.options;
            options.safety.clean(&mut occurrence.payload);
            engine.record_event(OCCURRED, &occurrence, std::future::ready(())).await?;
            let runner = Arc::clone(&options.hooks);
            dispatch.results = ask::all(runner.as_ref(), &options.safety, bindings, occurrence).await;
            // They were asked and may have done something, so what they said waits for the journal.
            engine.record_event(ANSWERED, &dispatch, engine.shared.stopping.cancelled()).await?;
            Ok(dispatch)
        })
        .await
    }

    async fn record_event(
        &self,
        kind: &'static str,
        payload: &(impl Serialize + Sync),
        give_up: impl Future<Output = ()> + Send,
    ) -> Result<(), AgentError> {
        let payload = serde_json::to_vec(payload).map_err(|error| AgentError::Internal(error.to_string()))?;
        let record = NewRecord::new(kind, self.shared.options.clock.now(), payload);
        self.shared.options.journal.append_patiently(vec![record], give_up).await?;
        Ok(())
    }
}
