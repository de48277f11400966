//! What readers that stop reading may hold, in bytes: per connection and per principal, whatever the transport.
//!
//! A page of a stream is a few hundred KiB at most, unless a single document has more. A stream reserves a whole page before it reads one, then holds as much as the page turned
//! out to have until the connection has taken all of it. A reader without a reservation lags: its documents stay on the journal. Answers of commands count in the same
//! way, from shares of their own: a command that only reads is carried out when there is room for its answer, and every answer that is not small is held until it was taken.
//!
//! What is larger than its reservation is owed (see `share`), and only a few things of one principal are read at a time, so that little can be owed. When a principal has used
//! up its bytes and somebody waits for some, the connection that has held something longest without taking it is closed, so that stopped readers do not hold up those
//! who read.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use palyra_identity::PrincipalId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::streams::Page;
use crate::serve::{ConnectionRef, Hold, Share, Unread};

/// What is counted by.
const UNIT: usize = 1024;
/// Units of a whole page.
const PAGE: u32 = 256;
/// Units that the streams of one connection hold at a time, whatever their number: 2 MiB. The answers of its commands may hold as much again.
const PER_CONNECTION: usize = 8 * PAGE as usize;
/// Units that all connections of one principal hold together: 16 MiB, and as much again for answers.
const PER_PRINCIPAL: usize = 64 * PAGE as usize;
/// Pages, or answers, of one principal that are read at a time: as many as there are threads that read. How large one is shows when it was read, so this many may be
/// larger than expected.
const READS: usize = 4;
/// Streams that one principal has open at a time, over all connections: each costs some KiB even if nobody says anything.
const STREAMS: usize = 4_096;
/// Answers with fewer bytes are not counted: a connection costs more by itself.
const SMALL: usize = 4 * 1024;
/// How long something may stay untaken while others of the same principal wait, if they are few. The more there are, the less it is: most of them are stopped readers
/// too, and whoever reads stands in one line with them.
const STALL: Duration = Duration::from_secs(10);
/// How often whoever waits looks for such a thing, and the least that one may stay untaken.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The budgets of all principals that hold something or could.
#[derive(Debug, Default)]
pub(crate) struct PageBudgets {
    principals: Mutex<HashMap<PrincipalId, Principal>>,
}

/// What one principal may hold.
#[derive(Debug)]
struct Principal {
    streams: Arc<Pool>,
    commands: Arc<Pool>,
    /// One more than there are open streams.
    open: Arc<()>,
}

/// What one principal holds of one kind.
#[derive(Debug)]
struct Pool {
    share: Arc<Share>,
    reads: Arc<Semaphore>,
    held: Mutex<Held>,
    /// How many wait for a reservation.
    waiting: AtomicUsize,
}

/// What is held and yet to be taken, oldest first.
#[derive(Debug, Default)]
struct Held {
    next: u64,
    things: BTreeMap<u64, (Instant, ConnectionRef)>,
}

impl PageBudgets {
    /// The budget of a new stream of somebody on a connection.
    pub(super) fn stream(&self, of: &PrincipalId, connection: &ConnectionRef) -> Result<PageBudget, TooManyStreams> {
        let open = Arc::clone(&find(&mut self.lock(), of).open);
        // The map has one of its own, and this is another.
        if Arc::strong_count(&open) > STREAMS + 1 {
            return Err(TooManyStreams);
        }
        Ok(PageBudget { budget: self.streams(of, connection), _open: open })
    }

    /// The budget of the streams that somebody has on a connection.
    pub(super) fn streams(&self, of: &PrincipalId, connection: &ConnectionRef) -> ReadBudget {
        let pool = Arc::clone(&find(&mut self.lock(), of).streams);
        ReadBudget { pool, shared: shares(connection).streams, connection: connection.clone() }
    }

    /// The budget of the answers that somebody gets on a connection.
    pub(super) fn commands(&self, of: &PrincipalId, connection: &ConnectionRef) -> ReadBudget {
        let pool = Arc::clone(&find(&mut self.lock(), of).commands);
        ReadBudget { pool, shared: shares(connection).commands, connection: connection.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PrincipalId, Principal>> {
        self.principals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a principal. Before a new one is made, those are forgotten who hold nothing and have no stream.
fn find<'a>(principals: &'a mut HashMap<PrincipalId, Principal>, of: &PrincipalId) -> &'a Principal {
    if !principals.contains_key(of) {
        principals.retain(|_, principal| principal.is_in_use());
    }
    principals.entry(of.clone()).or_insert_with(Principal::new)
}

fn shares(connection: &ConnectionRef) -> Unread {
    let make = || Unread { streams: Share::new(PER_CONNECTION), commands: Share::new(PER_CONNECTION) };
    connection.unread(make).unwrap_or_else(make)
}

impl Principal {
    fn new() -> Self {
        Self { streams: Arc::new(Pool::new()), commands: Arc::new(Pool::new()), open: Arc::default() }
    }

    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.open) > 1
            || Arc::strong_count(&self.streams) > 1
            || Arc::strong_count(&self.commands) > 1
    }
}

/// A principal has as many streams open as one may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyStreams;

impl From<TooManyStreams> for StableErrorEnvelope {
    fn from(TooManyStreams: TooManyStreams) -> Self {
        let message = format!("you have {STREAMS} streams open");
        Self::new("connections_exhausted", ErrorCategory::Availability, message)
            .hint("close streams that are not needed any more")
    }
}

/// What one stream may hold.
#[derive(Debug)]
pub(super) struct PageBudget {
    budget: ReadBudget,
    _open: Arc<()>,
}

impl PageBudget {
    /// Waits until a whole page may be held. Cancel-safe.
    pub(super) async fn acquire(&self) -> PagePermit {
        self.budget.acquire().await
    }

    /// A page that was read, from now on the connection's to take.
    pub(super) fn hand_out(&self, page: Page, mut permit: PagePermit) -> HeldPage {
        permit.handed_out = Some(self.budget.pool.lock().add(self.budget.connection.clone()));
        HeldPage { page, permit }
    }
}

/// What may be held of the answers that somebody gets on a connection.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget {
    pool: Arc<Pool>,
    /// Of the connection.
    shared: Arc<Share>,
    connection: ConnectionRef,
}

impl ReadBudget {
    /// Waits until something may be read that has as many bytes as a page. Cancel-safe.
    pub(super) async fn acquire(&self) -> PagePermit {
        // The connection's first: one that waits for itself takes nothing from its principal's others.
        let of_connection = self.shared.reserve(PAGE).await;
        let of_principal = self.pool.reserve().await;
        let reading = Arc::clone(&self.pool.reads).acquire_owned().await.ok();
        PagePermit { handed_out: None, pool: Arc::clone(&self.pool), reading, of_connection, of_principal }
    }

    /// Something of so many bytes that is there already, from now on the connection's to take.
    pub(crate) fn charge(&self, bytes: usize) -> PagePermit {
        let units = units(bytes);
        let (of_connection, of_principal) = (self.shared.charge(units), self.pool.share.charge(units));
        let handed_out = Some(self.pool.lock().add(self.connection.clone()));
        // Changes do not wait for room, so nobody else may look for those who do not take their answers.
        if self.pool.share.is_overdrawn() {
            self.pool.evict_stalled(Instant::now());
        }
        PagePermit { handed_out, pool: Arc::clone(&self.pool), reading: None, of_connection, of_principal }
    }

    /// The same unless it is too small to be counted.
    pub(crate) fn charge_large(&self, bytes: usize) -> Option<PagePermit> {
        (bytes >= SMALL).then(|| self.charge(bytes))
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT).max(1)
}

impl Held {
    fn add(&mut self, connection: ConnectionRef) -> u64 {
        let id = self.next;
        self.next += 1;
        self.things.insert(id, (Instant::now(), connection));
        id
    }
}

/// Somebody waits for a reservation until this is dropped.
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

impl Pool {
    fn new() -> Self {
        Self {
            share: Share::new(PER_PRINCIPAL),
            reads: Arc::new(Semaphore::new(READS)),
            held: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits until a whole page may be held, and closes connections meanwhile that take nothing.
    async fn reserve(&self) -> Hold {
        let _waiting = Waiting::begin(&self.waiting);
        let mut reserving = pin!(self.share.reserve(PAGE));
        loop {
            tokio::select! {
                biased;
                reserved = reserving.as_mut() => return reserved,
                () = tokio::time::sleep(LOOK_EVERY) => self.evict_stalled(Instant::now()),
            }
        }
    }

    /// How long something may stay untaken now.
    fn patience(&self) -> Duration {
        let waiting = u32::try_from(self.waiting.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        let pages = (PER_PRINCIPAL as u32) / PAGE;
        (STALL * pages / pages.saturating_add(waiting.saturating_sub(1))).max(LOOK_EVERY)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection that has not taken something for longest, if that is too long.
    fn evict_stalled(&self, now: Instant) {
        let mut held = self.lock();
        let Some((since, connection)) = held.things.first_entry().map(|oldest| oldest.get().clone()) else { return };
        if now.saturating_duration_since(since) < self.patience() {
            return;
        }
        // All that it holds goes with it; the next look is for another connection.
        held.things.retain(|_, (_, other)| !connection.is(other));
        drop(held);
        tracing::debug!("a connection is closed whose reader takes nothing, since others of the same principal wait");
        connection.evict();
    }
}

/// The right to hold a page or an answer.
#[derive(Debug)]
pub(crate) struct PagePermit {
    /// Where it stands among those that are to be taken.
    handed_out: Option<u64>,
    pool: Arc<Pool>,
    /// Kept until it is known how large it is.
    reading: Option<OwnedSemaphorePermit>,
    of_connection: Hold,
    of_principal: Hold,
}

impl PagePermit {
    /// Holds so many bytes from now on: those that there really are.
    pub(crate) fn resize(&mut self, bytes: usize) {
        for hold in [&mut self.of_connection, &mut self.of_principal] {
            hold.resize(units(bytes));
        }
        self.reading = None;
    }

    /// Bytes that hold the right until they were sent or dropped.
    pub(crate) fn hold(mut self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        self.resize(bytes.as_ref().len());
        Bytes::from_owner(HeldBytes { bytes, _permit: self })
    }
}

impl Drop for PagePermit {
    fn drop(&mut self) {
        if let Some(id) = self.handed_out {
            self.pool.lock().things.remove(&id);
        }
    }
}

struct HeldBytes<B> {
    bytes: B,
    _permit: PagePermit,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for HeldBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
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
        permit.resize(messages.iter().map(bytes).sum());
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
            let budget = PageBudgets::default().stream(&PrincipalId::uid(1), &connection.downgrade()).unwrap();
            Self { budget, _connection: connection }
        }

        pub(crate) async fn hold(&self, page: Page) -> HeldPage {
            let permit = self.budget.acquire().await;
            self.budget.hand_out(page, permit)
        }

        /// Whether nothing is held.
        pub(crate) fn is_free(&self) -> bool {
            self.budget.budget.shared.free() == PER_CONNECTION
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

    fn stream(budgets: &PageBudgets, of: &PrincipalId, connection: &Connection) -> PageBudget {
        budgets.stream(of, &connection.downgrade()).unwrap()
    }

    fn now(budget: &PageBudget) -> Option<PagePermit> {
        // A task of the runtime may acquire only so often before it is made to yield.
        let permit = tokio::task::unconstrained(budget.acquire()).now_or_never()?;
        let mut permit = budget.hand_out(Page::Events(Vec::new()), permit).permit;
        permit.resize(PAGE as usize * UNIT);
        Some(permit)
    }

    #[tokio::test]
    async fn bytes_are_bounded_per_connection_and_per_principal() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let (owner, guest) = (PrincipalId::uid(1), PrincipalId::uid(2));
        let open: Vec<_> = (0..PER_PRINCIPAL / PER_CONNECTION).map(|_| connection(&connections)).collect();
        let mut held = Vec::new();
        for connection in &open {
            // Streams of one connection share what it may hold.
            for _ in 0..PAGES {
                held.push(now(&stream(&budgets, &owner, connection)).unwrap());
            }
            assert!(now(&stream(&budgets, &owner, connection)).is_none(), "a connection has its share");
        }
        let last = connection(&connections);
        let last = stream(&budgets, &owner, &last);
        assert!(now(&last).is_none(), "and so has a principal");
        let other = connection(&connections);
        assert!(now(&stream(&budgets, &guest, &other)).is_some(), "others have theirs");
        let answers = budgets.commands(&owner, &other.downgrade());
        assert!(answers.acquire().now_or_never().is_some(), "commands are answered beside streams");
        held.pop();
        assert!(now(&last).is_some());
        drop((held, last, answers));
        stream(&budgets, &PrincipalId::uid(3), &other);
        assert!(!budgets.lock().contains_key(&owner), "whoever is gone is forgotten");
    }

    #[tokio::test]
    async fn a_small_page_holds_little_until_its_bytes_are_gone() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let open = connection(&connections);
        let budget = stream(&budgets, &PrincipalId::uid(1), &open);
        let small: Vec<Bytes> = (0..200).map(|_| now(&budget).unwrap().hold(vec![b'x'; 1500])).collect();
        let ReadBudget { pool, shared, .. } = &budget.budget;
        assert_eq!((shared.free(), pool.share.free()), (PER_CONNECTION - 400, PER_PRINCIPAL - 400));
        drop(small);
        assert_eq!((shared.free(), pool.share.free()), (PER_CONNECTION, PER_PRINCIPAL));
        assert!(pool.lock().things.is_empty());
    }

    #[tokio::test]
    async fn a_document_that_is_larger_than_a_page_is_held_whole() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let open = connection(&connections);
        let budget = stream(&budgets, &PrincipalId::uid(1), &open);
        let large = now(&budget).unwrap().hold(vec![b'x'; (PER_CONNECTION + 1) * UNIT]);
        assert!(now(&budget).is_none(), "it is more than the connection may hold");
        drop(large);
        assert!(now(&budget).is_some());
    }

    #[tokio::test]
    async fn few_things_are_read_at_a_time_before_their_size_is_known() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let owner = PrincipalId::uid(1);
        let open: Vec<_> = (0..READS + 1).map(|_| connection(&connections)).collect();
        let streams: Vec<_> = open.iter().map(|connection| stream(&budgets, &owner, connection)).collect();
        let acquire = |stream: &PageBudget| tokio::task::unconstrained(stream.acquire()).now_or_never();
        let mut reading: Vec<_> = streams.iter().take(READS).map(|stream| acquire(stream).unwrap()).collect();
        assert!(acquire(&streams[READS]).is_none());
        reading[0].resize(100 * UNIT);
        assert!(acquire(&streams[READS]).is_some());
    }

    #[tokio::test]
    async fn answers_that_are_there_already_make_the_next_reads_wait() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let (one, other) = (connection(&connections), connection(&connections));
        let owner = PrincipalId::uid(1);
        let answers = |connection: &Connection| budgets.commands(&owner, &connection.downgrade());
        let held = answers(&one).charge(PER_PRINCIPAL * UNIT + UNIT);
        assert!(answers(&other).acquire().now_or_never().is_none());
        assert!(answers(&one).charge_large(SMALL - 1).is_none(), "what is small is not counted");
        drop(held);
        assert!(answers(&other).acquire().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_principal_has_so_many_streams_and_no_more() {
        let (budgets, connections) = (PageBudgets::default(), connections());
        let (owner, open) = (PrincipalId::uid(1), connection(&connections));
        let mut streams: Vec<_> = (0..STREAMS).map(|_| stream(&budgets, &owner, &open)).collect();
        assert_eq!(budgets.stream(&owner, &open.downgrade()).err(), Some(TooManyStreams));
        assert!(budgets.stream(&PrincipalId::uid(2), &open.downgrade()).is_ok());
        streams.pop();
        assert!(budgets.stream(&owner, &open.downgrade()).is_ok());
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
        let pool = Pool::new();
        let after = |waiting| {
            pool.waiting.store(waiting, Ordering::Relaxed);
            pool.patience()
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
            held.extend((0..PAGES).map(|_| now(&stream(&budgets, &owner, connection)).unwrap()));
        }
        let evicted = |connection: &Connection| connection.evicted().now_or_never().is_some();
        let reader = connection(&connections);
        let reader = stream(&budgets, &owner, &reader);
        let pool = Arc::clone(&reader.budget.pool);
        let begun = Instant::now();
        pool.evict_stalled(begun + STALL / 2);
        assert!(!open.iter().any(evicted), "there is still time");
        pool.evict_stalled(begun + 2 * STALL);
        let (first, others) = open.split_first().unwrap();
        assert!(evicted(first) && !others.iter().any(evicted), "one is enough");
        // Its streams end with it.
        drop(held.drain(..PAGES));
        assert!(now(&reader).is_some());
        pool.evict_stalled(begun + 2 * STALL);
        assert!(evicted(&others[0]), "the next one is another");
    }
}
