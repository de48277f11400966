//! The set in force, swapped whole.
//!
//! A reader takes the set once and decides with it to the end; a reload never shows half of a change. A reload that fails leaves the
//! old set in force, returns the error and remembers it, so that health can say that the files on disk are not what is in force. At
//! start there is no old set: a fault refuses.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::{
    CommandRequest, Decision, Grant, PolicyDiff, PolicyError, PolicySet, PolicySource, PolicySources, Request, diff,
};

/// Holds the set in force.
#[derive(Debug)]
pub struct PolicyStore {
    current: RwLock<Arc<PolicySet>>,
    // Held through a whole reload, so that two of them cannot overtake each other.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sources: PolicySources,
    last_error: Option<PolicyError>,
}

impl PolicyStore {
    /// Loads the first set.
    ///
    /// # Errors
    /// When anything is wrong with it; nothing may start without policies.
    pub fn open(sources: PolicySources) -> Result<Self, PolicyError> {
        let set = PolicySet::load(&sources)?;
        Ok(Self { current: RwLock::new(Arc::new(set)), state: Mutex::new(State { sources, last_error: None }) })
    }

    /// The set in force.
    #[must_use]
    pub fn current(&self) -> Arc<PolicySet> {
        // A set is replaced in one assignment, so a panic elsewhere cannot leave a broken one behind.
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Decides with the set in force.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Decision {
        self.current().decide(request)
    }

    /// Decides on a command with the set in force.
    #[must_use]
    pub fn decide_command(&self, request: &CommandRequest<'_>) -> Decision {
        self.current().decide_command(request)
    }

    /// Reads everything anew and puts it in force; says what changed.
    ///
    /// # Errors
    /// When anything is wrong; the old set stays in force.
    pub fn reload(&self) -> Result<PolicyDiff, PolicyError> {
        self.reload_with(|_| {})
    }

    /// Puts other texts and grants beside the operator's directory in force. They take the place of all texts, the shipped ones too.
    ///
    /// # Errors
    /// When anything is wrong; the old set and the old texts stay.
    pub fn replace(&self, texts: Vec<PolicySource>, grants: Vec<Grant>) -> Result<PolicyDiff, PolicyError> {
        self.reload_with(|sources| {
            sources.texts = texts;
            sources.grants = grants;
        })
    }

    /// Puts the patterns that people agreed to in force, in place of those that were; everything else stays.
    ///
    /// # Errors
    /// When anything is wrong; the old set stays, so whoever takes a pattern back must not rely on it alone.
    pub fn agree(&self, patterns: Option<PolicySource>) -> Result<PolicyDiff, PolicyError> {
        self.reload_with(|sources| sources.agreed = patterns)
    }

    fn reload_with(&self, change: impl FnOnce(&mut PolicySources)) -> Result<PolicyDiff, PolicyError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sources = state.sources.clone();
        change(&mut sources);
        let loaded = PolicySet::load(&sources).and_then(|set| Ok((diff(&self.current(), &set)?, set)));
        match loaded {
            Ok((difference, set)) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
                *state = State { sources, last_error: None };
                Ok(difference)
            }
            Err(error) => {
                state.last_error = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Why the last reload failed, if it did: what is in force is then older than what is on disk.
    #[must_use]
    pub fn last_error(&self) -> Option<PolicyError> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last_error.clone()
    }
}
