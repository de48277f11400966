//! Agents: on the journal, and in memory for every run that is accepted.
//!
//! A change is journaled, then read back from the projection and put in force. Runs that are under way keep what they took.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use palyra_journal::NewRecord;
use serde::Serialize;

use super::Engine;
use crate::agents::{AgentProfile, AgentRow, check_id, nearest};
use crate::error::AgentError;
use crate::projections::{self, AgentRemoved, AgentSet, agent_kind};
use crate::spec::MAIN_AGENT;

/// Most agents there may be: all of them are kept in memory.
const MAX_AGENTS: usize = 256;

/// The agents that there are now.
#[derive(Default)]
pub(super) struct AgentBook {
    current: RwLock<Arc<BTreeMap<String, AgentRow>>>,
    /// Held over a change, from its check to its being in force.
    changing: tokio::sync::Mutex<()>,
}

impl AgentBook {
    fn current(&self) -> Arc<BTreeMap<String, AgentRow>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, rows: Vec<AgentRow>) {
        let rows = rows.into_iter().map(|row| (row.profile.agent_id.clone(), row)).collect();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rows);
    }

    /// The agent of this name. The main one need not have been set up; any other has to be there.
    pub(super) fn find(&self, name: &str) -> Result<Option<AgentRow>, AgentError> {
        let known = self.current();
        match known.get(name) {
            Some(row) => Ok(Some(row.clone())),
            None if name == MAIN_AGENT => Ok(None),
            None => {
                check_id(name)?;
                Err(missing(name, &known))
            }
        }
    }
}

fn missing(name: &str, known: &BTreeMap<String, AgentRow>) -> AgentError {
    AgentError::AgentNotFound { name: name.to_owned(), nearest: nearest(name, known.keys().map(String::as_str)) }
}

impl Engine {
    /// All agents, by name.
    #[must_use]
    pub fn agents(&self) -> Vec<AgentRow> {
        self.shared.agents.current().values().cloned().collect()
    }

    /// One agent.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn agent(&self, name: &str) -> Result<AgentRow, AgentError> {
        let known = self.shared.agents.current();
        known.get(name).cloned().ok_or_else(|| missing(name, &known))
    }

    /// Whether runs may name this agent: it was set up, or it is the main one.
    ///
    /// # Errors
    /// When they may not.
    pub fn check_agent(&self, name: &str) -> Result<(), AgentError> {
        self.shared.agents.find(name).map(drop)
    }

    /// Sets an agent up, or replaces the one of the same name. Runs that are under way keep what they took.
    ///
    /// # Errors
    /// When the agent makes no sense, it changed meanwhile, or there are too many.
    pub async fn set_agent(
        &self,
        agent: AgentProfile,
        by: &str,
        expected_version: Option<u64>,
    ) -> Result<AgentRow, AgentError> {
        agent.check()?;
        let by = by.to_owned();
        self.to_the_end(|engine| async move {
            let book = &engine.shared.agents;
            let _changing = book.changing.lock().await;
            let known = book.current();
            let id = agent.agent_id.clone();
            check_version(&id, known.get(&id), expected_version)?;
            if known.len() >= MAX_AGENTS && !known.contains_key(&id) {
                let why = format!("there are {MAX_AGENTS} agents already");
                return Err(AgentError::AgentInvalid { field: "agent_id", why });
            }
            let record = engine.agent_record(agent_kind::SET, &AgentSet { agent, by })?;
            engine.shared.options.journal.append(vec![record]).await?;
            engine.read_patiently(|| engine.open_agent_book()).await?;
            engine.agent(&id)
        })
        .await
    }

    /// Removes an agent, with records that are committed with it; returns what it was. Runs that are under way go on with what they took.
    ///
    /// # Errors
    /// When there is none of that name, or it changed meanwhile.
    pub async fn remove_agent(
        &self,
        name: &str,
        by: &str,
        expected_version: Option<u64>,
        beside: Vec<NewRecord>,
    ) -> Result<AgentRow, AgentError> {
        let removed = AgentRemoved { agent_id: name.to_owned(), by: by.to_owned() };
        self.to_the_end(|engine| async move {
            let _changing = engine.shared.agents.changing.lock().await;
            let before = engine.agent(&removed.agent_id)?;
            check_version(&removed.agent_id, Some(&before), expected_version)?;
            let mut records = vec![engine.agent_record(agent_kind::REMOVED, &removed)?];
            records.extend(beside);
            engine.shared.options.journal.append(records).await?;
            engine.read_patiently(|| engine.open_agent_book()).await?;
            Ok(before)
        })
        .await
    }

    /// Puts in force what the journal says.
    pub(super) async fn open_agent_book(&self) -> Result<(), AgentError> {
        let rows = self.query(|reader| projections::agents(reader.connection())).await?;
        self.shared.agents.replace(rows);
        Ok(())
    }

    fn agent_record(&self, kind: &'static str, payload: &impl Serialize) -> Result<NewRecord, AgentError> {
        let payload = serde_json::to_vec(payload).map_err(|error| AgentError::Internal(error.to_string()))?;
        Ok(NewRecord::new(kind, self.shared.options.clock.now(), payload))
    }
}

fn check_version(name: &str, known: Option<&AgentRow>, expected: Option<u64>) -> Result<(), AgentError> {
    let actual = known.map_or(0, |row| row.version);
    match expected {
        Some(expected) if expected != actual => {
            Err(AgentError::AgentVersionConflict { name: name.to_owned(), expected, actual })
        }
        _ => Ok(()),
    }
}
