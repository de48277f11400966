//! What readers that stop reading may hold, in bytes: per connection and per principal, whatever the transport.
//!
//! A page is a few hundred KiB at most, unless a single document has more. A stream reserves a whole page before it reads one, keeps as much of the reservation as the page
//! turned out to have, and holds that until the connection has taken all of it. A reader without a reservation lags: its documents stay on the journal. When a
//! principal has used up its bytes and somebody waits for some, the connection that has held its page longest without taking it is closed, so that stopped readers do not
//! hold up those who read.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use palyra_identity::PrincipalId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::streams::Page;
use crate::serve::ConnectionRef;

/// What is reserved at once.
const UNIT: usize = 1024;
/// Units of a whole page.
const PAGE: u32 = 256;
/// Units that the streams of one connection hold at a time, whatever their number: 2 MiB.
const PER_CONNECTION: usize = 8 * PAGE as usize;
/// Units that all connections of one principal hold together: 16 MiB.
const PER_PRINCIPAL: usize = 64 * PAGE as usize;
/// How long a page may stay untaken while others of the same principal wait, if they are few. The more there are, the less it is: most of them are stopped readers
/// too, and whoever reads stands in one line with them.
const STALL: Duration = Duration::from_secs(10);
/// How often whoever waits looks for such a page, and the least that a page may stay untaken.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The budgets of all principals that hold pages or could.
#[derive(Debug, Default)]
pub(crate) struct PageBudgets {
    principals: Mutex<HashMap<PrincipalId, Arc<Pages>>>,
}

/// What one principal holds.
#[derive(Debug)]
struct Pages {
    free: Arc<Semaphore>,
    held: Mutex<Held>,
    /// Streams that wait for a page.
    waiting: AtomicUsize,
}

/// The pages that are held, oldest first.
#[derive(Debug, Default)]
struct Held {
    next: u64,
    pages: BTreeMap<u64, (Instant, ConnectionRef)>,
}

impl PageBudgets {
    /// The budget of a stream of somebody on a connection.
    pub(super) fn stream(&self, of: &PrincipalId, connection: &ConnectionRef) -> PageBudget {
        let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has no stream left holds no page either.
        principals.retain(|_, pages| Arc::strong_count(pages) > 1);
        let principal = Arc::clone(principals.entry(of.clone()).or_insert_with(|| Arc::new(Pages::new())));
        let share = || Semaphore::new(PER_CONNECTION);
        let shared = connection.unread(share).unwrap_or_else(|| Arc::new(share()));
        PageBudget { principal, shared, connection: connection.clone() }
    }
}

/// What one stream may hold.
#[derive(Debug)]
pub(super) struct PageBudget {
    principal: Arc<Pages>,
    /// Of the connection.
    shared: Arc<Semaphore>,
    connection: ConnectionRef,
}

impl PageBudget {
    /// Waits until a whole page may be held; `None` never comes, since the budgets are not closed. Cancel-safe.
    pub(super) async fn acquire(&self) -> Option<PagePermit> {
        // The connection's first: one that waits for itself takes nothing from its principal's others.
        let shared = Arc::clone(&self.shared).acquire_many_owned(PAGE).await.ok()?;
        let _waiting = Waiting::begin(&self.principal.waiting);
        let mut acquiring = pin!(Arc::clone(&self.principal.free).acquire_many_owned(PAGE));
        let principal = loop {
            tokio::select! {
                biased;
                acquired = acquiring.as_mut() => break acquired.ok()?,
                () = tokio::time::sleep(LOOK_EVERY) => self.principal.evict_stalled(Instant::now()),
            }
        };
        let pages = Arc::clone(&self.principal);
        Some(PagePermit { handed_out: None, pages, of_connection: shared, of_principal: principal })
    }

    /// A page that was read, from now on the connection's to take.
    pub(super) fn hand_out(&self, page: Page, mut permit: PagePermit) -> HeldPage {
        permit.handed_out = Some(self.principal.lock().add(self.connection.clone()));
        HeldPage { page, permit }
    }
}

impl Held {
    fn add(&mut self, connection: ConnectionRef) -> u64 {
        let id = self.next;
        self.next += 1;
        self.pages.insert(id, (Instant::now(), connection));
        id
    }
}

/// Somebody waits for a page until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pages {
    fn new() -> Self {
        let free = Arc::new(Semaphore::new(PER_PRINCIPAL));
        Self { free, held: Mutex::default(), waiting: AtomicUsize::new(0) }
    }

    /// How long a page may stay untaken now.
    fn patience(&self) -> Duration {
        let waiting = u32::try_from(self.waiting.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        let pages = (PER_PRINCIPAL as u32) / PAGE;
        (STALL * pages / pages.saturating_add(waiting.saturating_sub(1))).max(LOOK_EVERY)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection whose page was not taken for longest, if that is too long.
    fn evict_stalled(&self, now: Instant) {
        let mut held = self.lock();
        let Some((since, connection)) = held.pages.first_entry().map(|oldest| oldest.get().clone()) else { return };
        if now.saturating_duration_since(since) < self.patience() {
            return;
        }
        // All of its pages go with it; the next look is for another connection.
        held.pages.retain(|_, (_, other)| !connection.is(other));
        drop(held);
        tracing::debug!("a connection is closed whose reader takes nothing, since others of the same principal wait");
        connection.evict();
    }
}

/// The right to hold a page.
#[derive(Debug)]
pub(crate) struct PagePermit {
    /// Where it stands among those whose pages are to be taken.
    handed_out: Option<u64>,
    pages: Arc<Pages>,
    of_connection: OwnedSemaphorePermit,
    of_principal: OwnedSemaphorePermit,
}

impl PagePermit {
    /// Keeps as much as a page of so many bytes needs.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let needed = bytes.div_ceil(UNIT).max(1);
        for permit in [&mut self.of_connection, &mut self.of_principal] {
            drop(permit.split(permit.num_permits().saturating_sub(needed)));
        }
    }

    /// Bytes that hold the right until they were sent or dropped.
    pub(crate) fn hold(mut self, bytes: Vec<u8>) -> Bytes {
        self.shrink_to(bytes.len());
        Bytes::from_owner(HeldBytes { bytes, _permit: self })
    }
}

impl Drop for PagePermit {
    fn drop(&mut self) {
        if let Some(id) = self.handed_out {
            self.pages.lock().pages.remove(&id);
        }
    }
}

struct HeldBytes {
    bytes: Vec<u8>,
    _permit: PagePermit,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A page with the right to hold it.
#[derive(Debug)]
pub(crate) struct HeldPage {
    pub(crate) page: Page,
    pub(crate) permit: PagePermit,
}

/// The messages of a page with the right to hold them, which ends when one past the last is asked for: a connection does that once it has taken them all.
#[derive(Debug)]
pub(crate) struct HeldMessages<T> {
    messages: std::vec::IntoIter<T>,
    permit: Option<PagePermit>,
}

impl<T> HeldMessages<T> {
    /// The messages that a page was written as, which take up so many bytes each.
    pub(crate) fn new(messages: Vec<T>, bytes: impl Fn(&T) -> usize, mut permit: PagePermit) -> Self {
        permit.shrink_to(messages.iter().map(bytes).sum());
        Self { messages: messages.into_iter(), permit: Some(permit) }
    }

    /// A message that is of no page, such as the refusal at the end of a stream.
    pub(crate) fn single(message: T) -> Self {
        Self { messages: vec![message].into_iter(), permit: None }
    }
}

impl<T> Default for HeldMessages<T> {
    fn default() -> Self {
        Self { messages: Vec::new().into_iter(), permit: None }
    }
}

impl<T> Iterator for HeldMessages<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let next = self.messages.next();
        if next.is_none() {
            self.permit = None;
        }
        next
    }
}

/// A budget for tests of those who hold pages.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::serve::{Connection, ConnectionLimits, Connections, Origin};

    pub(crate) struct TestBudget {
        budget: PageBudget,
        _connection: Connection,
    }

    impl TestBudget {
        pub(crate) fn new() -> Self {
            let connections = Connections::new(ConnectionLimits::for_open(1, Duration::from_secs(60)));
            let connection = connections.admit(Origin::Shared).unwrap();
            let budget = PageBudgets::default().stream(&PrincipalId::uid(1), &connection.downgrade());
            Self { budget, _connection: connection }
        }

        pub(crate) async fn hold(&self, page: Page) -> HeldPage {
            let permit = self.budget.acquire().await.unwrap();
            self.budget.hand_out(page, permit)
        }

        /// Whether nothing is held.
        pub(crate) fn is_free(&self) -> bool {
            self.budget.shared.available_permits() == PER_CONNECTION
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::serve::{Connection, ConnectionLimits, Connections, Origin};

    const PAGES: usize = PER_CONNECTION / PAGE as usize;

    fn connection(connections: &Connections) -> Connection {
        connections.admit(Origin::Shared).unwrap()
    }

    fn connections() -> Connections {
        Connections::new(ConnectionLimits::for_open(64, Duration::from_secs(60)))
    }

    fn now(budget: &PageBudget) -> Option<PagePermit> {
        // A task of the runtime may acquire only so often before it is made to yield.
        let permit = tokio::task::unconstrained(budget.acquire()).now_or_never().flatten()?;
        Some(budget.hand_out(Page::Events(Vec::new()), permit).permit)
    }

    #[tokio::test]
    async fn bytes_are_bounded_per_connection_and_per_principal() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let owner = PrincipalId::uid(1);
        let open: Vec<_> = (0..PER_PRINCIPAL / PER_CONNECTION).map(|_| connection(&connections)).collect();
        let mut held = Vec::new();
        for connection in &open {
            // Streams of one connection share what it may hold.
            for _ in 0..PAGES {
                held.push(now(&budgets.stream(&owner, &connection.downgrade())).unwrap());
            }
            assert!(now(&budgets.stream(&owner, &connection.downgrade())).is_none(), "a connection has its share");
        }
        let last = connection(&connections);
        let last = budgets.stream(&owner, &last.downgrade());
        assert!(now(&last).is_none(), "and so has a principal");
        let other = connection(&connections);
        assert!(now(&budgets.stream(&PrincipalId::uid(2), &other.downgrade())).is_some(), "others have theirs");
        held.pop();
        assert!(now(&last).is_some());
        drop((held, last));
        budgets.stream(&PrincipalId::uid(2), &other.downgrade());
        assert!(!budgets.principals.lock().unwrap().contains_key(&owner), "whoever is gone is forgotten");
    }

    #[tokio::test]
    async fn a_small_page_holds_little_until_its_bytes_are_gone() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let open = connection(&connections);
        let budget = budgets.stream(&PrincipalId::uid(1), &open.downgrade());
        let small: Vec<Bytes> = (0..200).map(|_| now(&budget).unwrap().hold(vec![b'x'; 1500])).collect();
        assert_eq!(budget.shared.available_permits(), PER_CONNECTION - 400);
        assert_eq!(budget.principal.free.available_permits(), PER_PRINCIPAL - 400);
        drop(small);
        assert_eq!(budget.shared.available_permits(), PER_CONNECTION);
        assert!(budget.principal.lock().pages.is_empty());
    }

    #[tokio::test]
    async fn messages_are_held_until_one_past_the_last_is_asked_for() {
        let budget = testing::TestBudget::new();
        let HeldPage { permit, .. } = budget.hold(Page::Events(Vec::new())).await;
        let mut messages = HeldMessages::new(vec!["a", "b"], |message| message.len(), permit);
        assert_eq!((messages.next(), messages.next()), (Some("a"), Some("b")));
        assert!(!budget.is_free(), "the last message may not have been sent");
        assert_eq!(messages.next(), None);
        assert!(budget.is_free());
    }

    #[test]
    fn the_more_wait_the_less_a_page_may_stay_untaken() {
        let pages = Pages::new();
        let after = |waiting| {
            pages.waiting.store(waiting, Ordering::Relaxed);
            pages.patience()
        };
        assert_eq!((after(1), after(65), after(100_000)), (STALL, STALL / 2, LOOK_EVERY));
    }

    #[tokio::test]
    async fn the_connection_is_closed_that_took_nothing_for_longest() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let owner = PrincipalId::uid(1);
        let open: Vec<_> = (0..PER_PRINCIPAL / PER_CONNECTION).map(|_| connection(&connections)).collect();
        let mut held = Vec::new();
        for connection in &open {
            held.extend((0..PAGES).map(|_| now(&budgets.stream(&owner, &connection.downgrade())).unwrap()));
        }
        let evicted = |connection: &Connection| connection.evicted().now_or_never().is_some();
        let reader = connection(&connections);
        let reader = budgets.stream(&owner, &reader.downgrade());
        let begun = Instant::now();
        reader.principal.evict_stalled(begun + STALL / 2);
        assert!(!open.iter().any(evicted), "there is still time");
        reader.principal.evict_stalled(begun + 2 * STALL);
        let (first, others) = open.split_first().unwrap();
        assert!(evicted(first) && !others.iter().any(evicted), "one is enough");
        // Its streams end with it.
        drop(held.drain(..PAGES));
        assert!(now(&reader).is_some());
        reader.principal.evict_stalled(begun + 2 * STALL);
        assert!(evicted(&others[0]), "the next one is another");
    }
}
