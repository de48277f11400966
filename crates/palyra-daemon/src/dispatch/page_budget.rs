//! What readers that stop reading may hold, in pages: per connection and per principal.
//!
//! A page is a few hundred KiB at most, unless a single document has more. A stream asks for a permit before it reads a page and holds it until all of the page was
//! handed to the connection. A reader without a permit lags: its events stay on the journal. When the pages of a principal are all held, those of its connections that
//! have taken nothing for a while are closed, so that stopped readers do not hold up the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use palyra_identity::PrincipalId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pages that one connection holds at a time, whatever the number of its streams.
const PER_CONNECTION: usize = 2;
/// Pages that all connections of one principal hold together: about 16 MiB.
const PER_PRINCIPAL: usize = 64;

/// The budgets of all principals that hold pages or could.
#[derive(Debug, Default)]
pub(crate) struct PageBudgets {
    principals: Mutex<HashMap<PrincipalId, Arc<Semaphore>>>,
}

impl PageBudgets {
    /// The budget of a new connection.
    pub(crate) fn connection(&self, of: &PrincipalId) -> PageBudget {
        let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has no connection left holds no page either.
        principals.retain(|_, pages| Arc::strong_count(pages) > 1);
        let principal = principals.entry(of.clone()).or_insert_with(|| Arc::new(Semaphore::new(PER_PRINCIPAL)));
        PageBudget { principal: Arc::clone(principal), connection: Arc::new(Semaphore::new(PER_CONNECTION)) }
    }
}

/// The budget of one connection.
#[derive(Debug, Clone)]
pub(crate) struct PageBudget {
    principal: Arc<Semaphore>,
    connection: Arc<Semaphore>,
}

/// The right to hold a page.
#[derive(Debug)]
pub(crate) struct PagePermit {
    _connection: OwnedSemaphorePermit,
    _principal: OwnedSemaphorePermit,
}

impl PageBudget {
    /// Waits until a page may be held; `None` never comes, since the budgets are not closed. Cancel-safe.
    pub(crate) async fn acquire(&self) -> Option<PagePermit> {
        // The connection's first: one that waits for itself takes nothing from its principal's others.
        let connection = Arc::clone(&self.connection).acquire_owned().await.ok()?;
        let principal = Arc::clone(&self.principal).acquire_owned().await.ok()?;
        Some(PagePermit { _connection: connection, _principal: principal })
    }

    /// Whether the principal can hold no further page.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.principal.available_permits() == 0
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn pages_are_bounded_per_connection_and_per_principal() {
        let budgets = PageBudgets::default();
        let owner = PrincipalId::uid(1);
        let connections: Vec<_> = (0..=PER_PRINCIPAL / PER_CONNECTION).map(|_| budgets.connection(&owner)).collect();
        let mut held = Vec::new();
        for connection in connections.iter().take(PER_PRINCIPAL / PER_CONNECTION) {
            assert!(!connection.is_exhausted());
            for _ in 0..PER_CONNECTION {
                held.push(connection.acquire().now_or_never().unwrap().unwrap());
            }
            assert!(connection.acquire().now_or_never().is_none(), "a connection has its share");
        }
        let last = connections.last().unwrap();
        assert!(last.is_exhausted() && last.acquire().now_or_never().is_none(), "and so has a principal");
        assert!(budgets.connection(&PrincipalId::uid(2)).acquire().now_or_never().is_some(), "others have theirs");
        held.pop();
        assert!(last.acquire().now_or_never().is_some());
        drop((held, connections));
        budgets.connection(&PrincipalId::uid(2));
        assert!(!budgets.principals.lock().unwrap().contains_key(&owner), "whoever is gone is forgotten");
    }
}
