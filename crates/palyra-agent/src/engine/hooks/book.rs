//! The bindings: on the journal, and in memory for those who ask at every step.
//!
//! A change is journaled, then read back from the projection and put in force; runs at work are told of it before whatever happens to them next.

use std::sync::{Arc, PoisonError, RwLock};

use palyra_journal::NewRecord;
use serde::Serialize;

use crate::engine::Engine;
use crate::error::AgentError;
use crate::hooks::{HookBindingRecord, HookSwitch};
use crate::projections::{self, BindingRemoved, BindingSet, BindingSwitched, HookBindingRow, hook_kind};

/// Most bindings there may be. Each is a plugin that every run waits for.
const MAX_BINDINGS: usize = 256;

/// The bindings that count now.
#[derive(Default)]
pub(in crate::engine) struct HookBook {
    current: RwLock<Arc<Bound>>,
    /// Held over a change, from its check to its being in force.
    pub(super) changing: tokio::sync::Mutex<()>,
}

/// Bindings in the order in which they are asked.
#[derive(Debug, Default)]
pub(in crate::engine) struct Bound {
    /// Another number for every change.
    pub(in crate::engine) generation: u64,
    /// Those of runs.
    pub(in crate::engine) of_runs: Vec<HookBindingRecord>,
    /// Those of the gateway and of skills.
    pub(super) of_events: Vec<HookBindingRecord>,
}

impl HookBook {
    pub(in crate::engine) fn current(&self) -> Arc<Bound> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, mut enabled: Vec<HookBindingRecord>) {
        HookBindingRecord::sort(&mut enabled);
        let (of_runs, of_events) = enabled.into_iter().partition(|binding| binding.event.run_phase().is_some());
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(Bound { generation: current.generation + 1, of_runs, of_events });
    }
}

impl Engine {
    /// Binds a hook, or replaces the binding of the same id. Runs at work know it before their next step.
    ///
    /// # Errors
    /// When the binding makes no sense, or there are too many.
    pub async fn bind_hook(&self, binding: HookBindingRecord, by: &str) -> Result<HookBindingRow, AgentError> {
        binding.check()?;
        let by = by.to_owned();
        self.to_the_end(|engine| async move {
            let _changing = engine.shared.hooks.changing.lock().await;
            let id = binding.id.clone();
            let known = engine.hook_bindings().await?;
            if known.len() >= MAX_BINDINGS && !known.iter().any(|row| row.binding.id == id) {
                let why = format!("there are {MAX_BINDINGS} bindings already");
                return Err(AgentError::HookBindingInvalid { field: "id", why });
            }
            engine.record_hook(hook_kind::SET, &BindingSet { binding, by }).await?;
            engine.read_patiently(|| engine.hook_binding(&id)).await
        })
        .await
    }

    /// Lets a binding count, or not.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn switch_hook(&self, id: &str, to: HookSwitch, by: &str) -> Result<HookBindingRow, AgentError> {
        let switched = BindingSwitched { id: id.to_owned(), to, by: by.to_owned() };
        self.to_the_end(|engine| async move {
            let _changing = engine.shared.hooks.changing.lock().await;
            let before = engine.hook_binding(&switched.id).await?;
            if before.binding.enabled == (to == HookSwitch::Enabled) {
                return Ok(before);
            }
            engine.record_hook(hook_kind::SWITCHED, &switched).await?;
            engine.read_patiently(|| engine.hook_binding(&switched.id)).await
        })
        .await
    }

    /// Removes a binding; returns what it was.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn unbind_hook(&self, id: &str, by: &str) -> Result<HookBindingRow, AgentError> {
        let removed = BindingRemoved { id: id.to_owned(), by: by.to_owned() };
        self.to_the_end(|engine| async move {
            let _changing = engine.shared.hooks.changing.lock().await;
            let before = engine.hook_binding(&removed.id).await?;
            engine.record_hook(hook_kind::REMOVED, &removed).await?;
            Ok(before)
        })
        .await
    }

    /// One binding.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn hook_binding(&self, id: &str) -> Result<HookBindingRow, AgentError> {
        let wanted = id.to_owned();
        self.query(move |reader| projections::hook_binding(reader.connection(), &wanted))
            .await?
            .ok_or_else(|| AgentError::HookBindingNotFound(id.to_owned()))
    }

    /// All bindings, by id; those that do not count, too.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn hook_bindings(&self) -> Result<Vec<HookBindingRow>, AgentError> {
        self.query(|reader| projections::hook_bindings(reader.connection())).await
    }

    /// Puts in force what the journal says.
    pub(in crate::engine) async fn open_hook_book(&self) -> Result<(), AgentError> {
        let rows = self.hook_bindings().await?;
        let enabled = rows.into_iter().map(|row| row.binding).filter(|binding| binding.enabled).collect();
        self.shared.hooks.replace(enabled);
        Ok(())
    }

    async fn record_hook(&self, kind: &'static str, payload: &(impl Serialize + Sync)) -> Result<(), AgentError> {
        let payload = serde_json::to_vec(payload).map_err(|error| AgentError::Internal(error.to_string()))?;
        let record = NewRecord::new(kind, self.shared.options.clock.now(), payload);
        self.shared.options.journal.append(vec![record]).await?;
        self.read_patiently(|| self.open_hook_book()).await
    }
}
