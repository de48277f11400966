//! The breakers of everything that can rest: providers, keys, models of a key. All calls share them.
//!
//! INVARIANT: the lock is never held across a wait.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::Timestamp;
use serde::Serialize;

use super::breaker::{Access, Breaker, Caller, State};
use super::memory::AnswerMemory;
use super::pace::Pace;
use super::policy::{Blame, RoutePolicy, course};
use crate::accounts::Accounts;
use crate::error::{ModelError, ModelErrorClass};

/// Something that can rest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Gate {
    /// The provider.
    pub provider: String,
    /// One key of it; all of them if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// One model with that key; all of them if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.provider)?;
        if let Some(credential) = &self.credential {
            write!(f, " with key `{credential}`")?;
        }
        if let Some(model) = &self.model {
            write!(f, " for model `{model}`")?;
        }
        Ok(())
    }
}

/// Whether something may be asked, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// It may; it has failed lately.
    Closed,
    /// It rests.
    Open,
    /// Its rest is over: the next call finds out whether it works.
    HalfOpen,
    /// A call is finding out.
    Probing,
}

/// What is known of something that has failed lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateHealth {
    /// What it is.
    pub gate: Gate,
    /// Whether it may be asked.
    pub state: GateState,
    /// When its rest ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Failures in a row since it last worked or rested.
    pub failures: u32,
    /// The newest failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ModelError>,
}

/// One way to make a call: a model with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) provider: String,
    pub(super) credential: Option<String>,
    pub(super) model: String,
}

impl Way {
    fn gate(&self, blame: Blame) -> Option<Gate> {
        let (credential, model) = match blame {
            Blame::Request => return None,
            Blame::Provider => (None, None),
            Blame::Credential => (Some(self.key()), None),
            Blame::Model => (Some(self.key()), Some(self.model.clone())),
        };
        Some(Gate { provider: self.provider.clone(), credential, model })
    }

    /// An account without keys has one way in all the same.
    fn key(&self) -> String {
        self.credential.clone().unwrap_or_default()
    }

    fn gates(&self) -> impl Iterator<Item = Gate> {
        [Blame::Provider, Blame::Credential, Blame::Model].into_iter().filter_map(|blame| self.gate(blame))
    }
}

/// All breakers, and who has ever answered.
pub(super) struct Gates {
    breakers: Mutex<BTreeMap<Gate, Breaker>>,
    answered: Mutex<BTreeSet<String>>,
    accounts: Mutex<Arc<Accounts>>,
    memory: Option<Arc<dyn AnswerMemory>>,
}

impl Gates {
    pub(super) fn new(accounts: Arc<Accounts>, memory: Option<Arc<dyn AnswerMemory>>) -> Self {
        let gates = Self {
            breakers: Mutex::default(),
            answered: Mutex::default(),
            accounts: Mutex::new(Arc::clone(&accounts)),
            memory,
        };
        gates.serve(accounts);
        gates
    }

    /// From now on these accounts are meant; those that answered before this process began are known to have.
    pub(super) fn serve(&self, accounts: Arc<Accounts>) {
        if let Some(memory) = &self.memory {
            let known = accounts.providers.iter().filter(|(name, account)| memory.has_answered(name, account));
            self.answered().extend(known.map(|(name, _)| name.clone()));
        }
        *self.accounts.lock().unwrap_or_else(PoisonError::into_inner) = accounts;
    }

    /// Whether this way is open now, or what keeps it shut longest.
    pub(super) fn access(&self, way: &Way, now: Timestamp) -> Access {
        access(&self.locked(), way, now)
    }

    /// What keeps this way shut or has failed on it, for people.
    pub(super) fn trouble(&self, way: &Way, now: Timestamp) -> Option<GateHealth> {
        let breakers = self.locked();
        let known = way.gates().filter_map(|gate| breakers.get(&gate).map(|breaker| health(gate, breaker, now)));
        known.filter(|health| health.last.is_some()).max_by_key(|health| health.until)
    }

    pub(super) fn health(&self, now: Timestamp) -> Vec<GateHealth> {
        self.locked().iter().map(|(gate, breaker)| health(gate.clone(), breaker, now)).collect()
    }

    /// Forgets what is known of all other providers.
    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.locked().retain(|gate, _| is_kept(&gate.provider));
        self.answered().retain(|provider| is_kept(provider));
    }

    /// Forgets that a provider as a whole has failed.
    pub(super) fn forget_outage(&self, provider: &str) {
        let gate = Gate { provider: provider.to_owned(), credential: None, model: None };
        self.locked().remove(&gate);
    }

    /// Whether a provider has ever answered. One that has and cannot be reached is away; one that has not is more likely configured wrongly.
    pub(super) fn has_answered(&self, provider: &str) -> bool {
        self.answered().contains(provider)
    }

    fn note_answer(&self, provider: &str) {
        {
            let mut answered = self.answered();
            if answered.contains(provider) {
                return;
            }
            answered.insert(provider.to_owned());
        }
        let Some(memory) = &self.memory else { return };
        let accounts = Arc::clone(&self.accounts.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(account) = accounts.providers.get(provider) {
            memory.note_answer(provider, account);
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<Gate, Breaker>> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn access(breakers: &BTreeMap<Gate, Breaker>, way: &Way, now: Timestamp) -> Access {
    way.gates().filter_map(|gate| breakers.get(&gate)).fold(Access::Free, |access, breaker| {
        match (access, breaker.access(now)) {
            (Access::Rests { until, class }, Access::Rests { until: other, class: its }) => {
                if other > until {
                    Access::Rests { until: other, class: its }
                } else {
                    Access::Rests { until, class }
                }
            }
            (rests @ Access::Rests { .. }, _) | (_, rests @ Access::Rests { .. }) => rests,
            (Access::Free, Access::Free) => Access::Free,
            (Access::Probe, _) | (_, Access::Probe) => Access::Probe,
        }
    })
}

fn health(gate: Gate, breaker: &Breaker, now: Timestamp) -> GateHealth {
    let (state, until) = match breaker.state {
        State::Closed => (GateState::Closed, None),
        State::Open { until } if now >= until => (GateState::HalfOpen, Some(until)),
        State::Open { until } => (GateState::Open, Some(until)),
        State::Probing { .. } => (GateState::Probing, None),
    };
    GateHealth { gate, state, until, failures: breaker.failures, last: breaker.last.clone() }
}

/// Whether a rest is taken notice of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insist {
    /// It is.
    No,
    /// It is not: there is nobody else to ask, and a person may have mended what was wrong.
    Yes,
}

/// Leave to make one try. What it is told settles the breakers; dropped without a word, it lets the next caller probe.
pub(super) struct Pass {
    gates: Arc<Gates>,
    pace: Arc<dyn Pace>,
    way: Way,
    /// What this try is the probe of.
    probes: Vec<Gate>,
}

impl Pass {
    /// Leave for a try of this way, unless it rests or somebody else probes it. `Insist` takes no notice of rests.
    pub(super) fn take(gates: &Arc<Gates>, pace: &Arc<dyn Pace>, way: &Way, insist: Insist) -> Option<Self> {
        let now = pace.now();
        let mut breakers = gates.locked();
        if insist == Insist::No && matches!(access(&breakers, way, now), Access::Rests { .. }) {
            return None;
        }
        let mut probes = Vec::new();
        for gate in way.gates() {
            if let Some(breaker) = breakers.get_mut(&gate)
                && breaker.state != State::Closed
            {
                breaker.probe(now);
                probes.push(gate);
            }
        }
        drop(breakers);
        Some(Self { gates: Arc::clone(gates), pace: Arc::clone(pace), way: way.clone(), probes })
    }

    /// It answers: others need not wait for the end of the answer.
    pub(super) fn answers(&mut self) {
        self.gates.note_answer(&self.way.provider);
        let mut breakers = self.gates.locked();
        for gate in self.probes.drain(..) {
            if let Some(breaker) = breakers.get_mut(&gate) {
                breaker.answers();
            }
        }
    }

    /// The answer is whole.
    pub(super) fn succeeded(mut self) {
        self.gates.note_answer(&self.way.provider);
        self.probes.clear();
        let mut breakers = self.gates.locked();
        for gate in self.way.gates() {
            // One that does not fail is not worth remembering.
            breakers.remove(&gate);
        }
    }

    /// The try failed.
    pub(super) fn failed(mut self, error: &ModelError, policy: &RoutePolicy) {
        let now = self.pace.now();
        let chance = self.pace.chance();
        let blamed = self.way.gate(course(error).blame);
        let mut breakers = self.gates.locked();
        if let Some(gate) = &blamed {
            let limit = if gate.credential.is_none() { policy.failures_to_rest } else { 1 };
            let breaker = breakers.entry(gate.clone()).or_default();
            let caller = if self.probes.contains(gate) { Caller::Probe } else { Caller::Regular };
            breaker.failed(now, error, caller, limit, |times| policy.rest(error, times, chance));
        }
        for gate in self.probes.drain(..).filter(|gate| Some(gate) != blamed.as_ref()) {
            if let Some(breaker) = breakers.get_mut(&gate) {
                // It was not to blame: who was refused by its key has found the provider at work.
                breaker.answers();
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.probes.is_empty() {
            return;
        }
        let now = self.pace.now();
        let mut breakers = self.gates.locked();
        for gate in self.probes.drain(..) {
            if let Some(breaker) = breakers.get_mut(&gate) {
                breaker.release(now);
            }
        }
    }
}

/// How a rest is told to people.
pub(super) fn told(class: ModelErrorClass, until: Timestamp, now: Timestamp) -> String {
    let seconds = until.since(now).as_secs_f64().ceil();
    format!("is cooling down for {seconds} s more after `{class}`")
}
