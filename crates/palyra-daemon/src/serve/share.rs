//! How much a party may hold at a time, in units of its own choice.
//!
//! Whoever knows beforehand how much it will hold reserves that. What turns out to be more is charged at once, whether or not it is there, and then owed: nobody else
//! reserves anything until it has been given back. So one thing that is larger than the whole share passes, alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// What may be held.
#[derive(Debug)]
pub(crate) struct Share {
    free: Semaphore,
    owed: Mutex<usize>,
}

impl Share {
    pub(crate) fn new(units: usize) -> Arc<Self> {
        Arc::new(Self { free: Semaphore::new(units), owed: Mutex::default() })
    }

    /// Waits until so many units may be held. Cancel-safe.
    pub(crate) async fn reserve(self: &Arc<Self>, units: u32) -> Hold {
        match self.free.acquire_many(units).await {
            Ok(acquired) => acquired.forget(),
            // Nobody closes it.
            Err(_) => std::future::pending().await,
        }
        Hold { share: Arc::clone(self), units: units as usize }
    }

    /// Holds so many units from now on.
    pub(crate) fn charge(self: &Arc<Self>, units: usize) -> Hold {
        self.take(units);
        Hold { share: Arc::clone(self), units }
    }

    /// Whether more is held than there is.
    pub(crate) fn is_overdrawn(&self) -> bool {
        *self.lock() > 0
    }

    fn take(&self, units: usize) {
        let mut owed = self.lock();
        *owed += units - self.free.forget_permits(units);
    }

    fn give_back(&self, units: usize) {
        let mut owed = self.lock();
        let paid = units.min(*owed);
        *owed -= paid;
        self.free.add_permits(units - paid);
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

/// Units that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    share: Arc<Share>,
    units: usize,
}

impl Hold {
    /// Holds so many units from now on, more or less than before.
    pub(crate) fn resize(&mut self, units: usize) {
        if units > self.units {
            self.share.take(units - self.units);
        } else {
            self.share.give_back(self.units - units);
        }
        self.units = units;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.share.give_back(self.units);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn reserved(share: &Arc<Share>, units: u32) -> Option<Hold> {
        share.reserve(units).now_or_never()
    }

    #[tokio::test]
    async fn what_is_larger_than_was_reserved_is_owed_before_anybody_else_is_let_in() {
        let share = Share::new(10);
        let mut large = reserved(&share, 4).unwrap();
        let small = reserved(&share, 4).unwrap();
        large.resize(25);
        assert!(share.is_overdrawn());
        assert!(reserved(&share, 1).is_none());
        drop(small);
        assert!(share.is_overdrawn() && reserved(&share, 1).is_none(), "25 of 10 are held");
        large.resize(9);
        assert!(!share.is_overdrawn() && reserved(&share, 2).is_none() && reserved(&share, 1).is_some());
        drop(large);
        assert_eq!(share.free(), 10);
    }

    #[tokio::test]
    async fn what_is_charged_makes_whoever_waits_wait_on() {
        let share = Share::new(2);
        let first = reserved(&share, 2).unwrap();
        let mut waiting = Box::pin(share.reserve(2));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        let charged = share.charge(3);
        drop(first);
        assert!(futures::poll!(waiting.as_mut()).is_pending(), "3 of 2 are still held");
        drop(charged);
        drop(waiting.await);
        assert_eq!(share.free(), 2);
    }
}
