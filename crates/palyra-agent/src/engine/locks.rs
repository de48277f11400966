//! Locks by name: whoever changes a session holds its lock from looking at it to the commit.
//!
//! The journal appends without conditions, and this process is its only writer; so a check made under the lock still holds when the record is
//! committed. Locks are taken in one order (idempotency key, session key, session), so nobody waits in a circle. Drivers take none of them while
//! their run is at work; tools that draw take that of the drawings alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use palyra_common::SessionId;
use tokio::sync::OwnedMutexGuard;

/// Names known before those that nobody holds are forgotten.
const FORGET_AT: usize = 256;

/// All locks of an engine.
#[derive(Default)]
pub(super) struct Locks(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

/// A lock that is held.
pub(super) type Held = OwnedMutexGuard<()>;

impl Locks {
    /// Waits for the lock of a session.
    pub(super) async fn session(&self, id: SessionId) -> Held {
        self.hold(format!("session {id}")).await
    }

    /// Waits for the lock of what is drawn in a session. The innermost one: nobody waits for anything else while holding it but the journal.
    pub(super) async fn drawing(&self, id: SessionId) -> Held {
        self.hold(format!("drawing {id}")).await
    }

    /// Waits for the lock of a session's key.
    pub(super) async fn key(&self, owner: &str, key: &str) -> Held {
        self.hold(format!("key {owner}\0{key}")).await
    }

    /// Waits for the lock of an idempotency key.
    pub(super) async fn idempotency(&self, owner: &str, key: &str) -> Held {
        self.hold(format!("idempotency {owner}\0{key}")).await
    }

    async fn hold(&self, name: String) -> Held {
        let lock = {
            // The map is whole between any two statements, so a panic elsewhere does not spoil it.
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Growing is what makes room for looking again, so the look costs each caller a constant.
            if known.len() >= FORGET_AT && known.len() == known.capacity() {
                known.retain(|_, lock| lock.strong_count() > 0);
            }
            match known.get(&name).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::default();
                    known.insert(name, Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_name_is_held_once_and_forgotten_when_nobody_holds_it() {
        let locks = Locks::default();
        let id = SessionId::generate();
        let held = locks.session(id).await;
        let other = locks.key("o", "k").await;
        assert!(futures::FutureExt::now_or_never(locks.session(id)).is_none(), "it is held");
        drop(held);
        assert!(futures::FutureExt::now_or_never(locks.session(id)).is_some());
        for _ in 0..10_000 {
            drop(locks.session(SessionId::generate()).await);
        }
        assert!(locks.0.lock().unwrap().len() < 4 * FORGET_AT, "names do not pile up");
        drop(other);
    }
}
