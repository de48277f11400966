//! Turns: who comes second with the same key waits for the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// Held by whoever has the turn, wanted by those who wait.
type Lock = Arc<tokio::sync::Mutex<()>>;

/// Keys that are in use at this moment.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    used: Mutex<HashMap<(String, String), Lock>>,
}

/// While it is held, nobody else has the turn of its key.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    keys: &'a Keys,
    key: (String, String),
    guard: Option<OwnedMutexGuard<()>>,
}

impl Keys {
    /// Waits for the turn of a caller's key.
    pub(crate) async fn turn(&self, caller: &str, key: &str) -> Turn<'_> {
        let key = (caller.to_owned(), key.to_owned());
        let lock = {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(used.entry(key.clone()).or_default())
        };
        let mut turn = Turn { keys: self, key, guard: None };
        turn.guard = Some(lock.lock_owned().await);
        turn
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut used = self.keys.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.guard = None;
        // The map's own and, if somebody waits, theirs.
        if used.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            used.remove(&self.key);
        }
    }
}
