//! Which connections a listener has open, and which of them gives way when there is no room for another.
//!
//! INVARIANT: a connection on which nobody has authenticated never keeps out one on which somebody will. New connections are therefore always accepted; when a bound
//! is reached, the unauthenticated connection that has been idle longest is closed, then an authenticated one without a request under way. Only a listener whose
//! slots are all busy for authenticated callers refuses, and no principal takes them all: behind a proxy, where all callers share an address, that is what bounds one of
//! them. Each listener has slots of its own, so the Unix socket works whatever happens over TCP and QUIC.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use http::{Extensions, Version};
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use palyra_identity::{PrincipalId, Source};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::share::Share;

/// How long a connection without a request under way is kept if nobody has authenticated on it, or if it speaks HTTP/1. The head of a request has to arrive within that, too.
const BRIEF_IDLE: Duration = Duration::from_secs(30);
/// Connections that were told to close and have not yet; beyond this, accepting slows down, so that file handles stay bounded.
const MAX_CLOSING: usize = 64;
/// How long accepting waits for one of them.
const CLOSING_PAUSE: Duration = Duration::from_millis(50);

/// Requests of strangers under way on one connection. The answers that strangers get are given at once, so whoever has more of them waiting holds memory on purpose: with
/// bodies that do not end, or by watching health on each stream of HTTP/2.
const STRANGERS_REQUESTS: usize = 16;

/// What one listener may hold open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Connections in all.
    pub(crate) open: usize,
    /// Those on which nobody has authenticated.
    pub(crate) unauthenticated: usize,
    /// Connections from one remote address.
    pub(crate) per_source: usize,
    /// Those of one remote address on which nobody has authenticated.
    pub(crate) unauthenticated_per_source: usize,
    /// Those on which one principal has authenticated last.
    pub(crate) per_principal: usize,
    /// How long a connection without a request under way is kept if somebody has authenticated on it. HTTP/1 is stricter: see [`BRIEF_IDLE`].
    pub(crate) idle: Duration,
}

impl ConnectionLimits {
    /// A listener's share of the files that this process may open.
    pub(crate) fn for_open_files(files: u64, idle: Duration) -> Self {
        // Three listeners; as many files again are left to journal, tools and outgoing connections.
        let share = usize::try_from(files / 6).unwrap_or(usize::MAX);
        Self::for_open(share.clamp(32, 2048), idle)
    }

    /// A listener with so many slots; few of them are shared less strictly, so that each share is at least one.
    pub(crate) fn for_open(open: usize, idle: Duration) -> Self {
        Self {
            open,
            unauthenticated: (open / 4).max(1),
            per_source: (open / 2).max(1),
            unauthenticated_per_source: (open / 16).max(1),
            per_principal: (open - open / 4).max(1),
            idle,
        }
    }

    fn brief_idle(&self) -> Duration {
        BRIEF_IDLE.min(self.idle)
    }
}

/// Who is at the other end of a connection, as far as accepting it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The kernel vouches for a user who may use this daemon.
    Trusted,
    /// This machine or a trusted proxy: many callers share the address, so it bounds nobody.
    Shared,
    /// A single remote address.
    Remote(Source),
}

impl Origin {
    /// Where a TCP connection comes from.
    pub(crate) fn of_address(address: IpAddr, proxies: &[IpAddr]) -> Self {
        let address = address.to_canonical();
        if address.is_loopback() || proxies.contains(&address) {
            Self::Shared
        } else {
            Self::Remote(Source::of(address))
        }
    }
}

/// The open connections of one listener.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Table>);

#[derive(Debug)]
struct Table {
    limits: ConnectionLimits,
    epoch: Instant,
    entries: Mutex<Entries>,
    /// One that was evicted is gone.
    closed: Notify,
}

#[derive(Debug, Default)]
struct Entries {
    next_id: u64,
    unauthenticated: HashMap<u64, Arc<Facts>>,
    authenticated: HashMap<u64, Arc<Facts>>,
    /// Evicted, and not yet gone.
    closing: usize,
}

#[derive(Debug)]
struct Facts {
    origin: Origin,
    authenticated: AtomicBool,
    /// Who authenticated last. A proxy's connection may carry requests of many, one after the other.
    principal: Mutex<Option<PrincipalId>>,
    /// Requests whose answers are not yet written; an upgraded connection is one for ever.
    requests: AtomicUsize,
    /// When the last of them ended, in milliseconds of the table's clock.
    idle_since: AtomicU64,
    /// Whether its last request came by HTTP/1, which has no signs of life between requests.
    http1: AtomicBool,
    /// What answers on this connection may hold unread; made for the first one that counts.
    unread: OnceLock<Unread>,
    evicted: CancellationToken,
}

/// What the answers on one connection may hold unread. Commands have a share of their own, so that they are answered beside streams that nobody reads.
#[derive(Debug, Clone)]
pub(crate) struct Unread {
    pub(crate) streams: Arc<Share>,
    pub(crate) commands: Arc<Share>,
}

impl Facts {
    fn is_of(&self, principal: &PrincipalId) -> bool {
        self.principal.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(principal)
    }

    fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Those that give way first are least.
    fn rank(&self) -> (bool, u64) {
        (self.is_busy(), self.idle_since.load(Ordering::Relaxed))
    }
}

/// One open connection. The last clone to go frees its slot.
#[derive(Debug, Clone)]
pub(crate) struct Connection(Arc<Slot>);

/// A connection as those know it who must not keep its slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionRef(Weak<Slot>);

#[derive(Debug)]
struct Slot {
    id: u64,
    table: Arc<Table>,
    facts: Arc<Facts>,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        let (entries, closed) = (Mutex::default(), Notify::new());
        Self(Arc::new(Table { limits, epoch: Instant::now(), entries, closed }))
    }

    /// Takes a slot, closing other connections where there is none; `None` if none of them can give way.
    pub(crate) fn admit(&self, origin: Origin) -> Option<Connection> {
        let limits = self.0.limits;
        let mut entries = self.0.lock();
        if let Origin::Remote(_) = origin {
            let same = |facts: &Facts| facts.origin == origin;
            let strangers = entries.unauthenticated.values().filter(|facts| same(facts)).count();
            if strangers >= limits.unauthenticated_per_source {
                entries.evict_unauthenticated(same);
            }
            let known = entries.authenticated.values().filter(|facts| same(facts)).count();
            if strangers + known >= limits.per_source
                && !entries.evict_unauthenticated(same)
                && !entries.evict_authenticated(same)
            {
                return None;
            }
        }
        let trusted = origin == Origin::Trusted;
        if !trusted && entries.unauthenticated.len() >= limits.unauthenticated {
            entries.evict_unauthenticated(|_| true);
        }
        if entries.unauthenticated.len() + entries.authenticated.len() >= limits.open
            && !entries.evict_unauthenticated(|_| true)
            && !entries.evict_authenticated(|_| true)
        {
            return None;
        }
        let facts = Arc::new(Facts {
            origin,
            authenticated: AtomicBool::new(trusted),
            principal: Mutex::default(),
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.0.now()),
            http1: AtomicBool::new(false),
            unread: OnceLock::new(),
            evicted: CancellationToken::new(),
        });
        let id = entries.next_id;
        entries.next_id += 1;
        let map = if trusted { &mut entries.authenticated } else { &mut entries.unauthenticated };
        map.insert(id, Arc::clone(&facts));
        Some(Connection(Arc::new(Slot { id, table: Arc::clone(&self.0), facts })))
    }

    /// Whether half of the slots are taken, or half of those for connections on which nobody has authenticated.
    pub(crate) fn is_crowded(&self) -> bool {
        let (limits, entries) = (self.0.limits, self.0.lock());
        let unauthenticated = entries.unauthenticated.len();
        unauthenticated > limits.unauthenticated / 2 || unauthenticated + entries.authenticated.len() > limits.open / 2
    }

    /// Gives connections that were told to close a moment to let go of their files, if there are many.
    pub(crate) async fn wait_for_closing(&self) {
        if self.0.lock().closing >= MAX_CLOSING {
            let _ = tokio::time::timeout(CLOSING_PAUSE, self.0.closed.notified()).await;
        }
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Entries {
    /// Closes the unauthenticated connection that was idle longest; one with a request under way only if all have.
    fn evict_unauthenticated(&mut self, may: impl Fn(&Facts) -> bool) -> bool {
        let found = self.unauthenticated.iter().filter(|(_, facts)| may(facts)).min_by_key(|(_, facts)| facts.rank());
        let Some(id) = found.map(|(id, _)| *id) else { return false };
        let removed = self.unauthenticated.remove(&id);
        self.close(removed)
    }

    /// Closes the authenticated connection that was idle longest; never one with a request under way.
    fn evict_authenticated(&mut self, may: impl Fn(&Facts) -> bool) -> bool {
        let idle = self.authenticated.iter().filter(|(_, facts)| !facts.is_busy() && may(facts));
        let Some(id) = idle.min_by_key(|(_, facts)| facts.rank()).map(|(id, _)| *id) else { return false };
        let removed = self.authenticated.remove(&id);
        self.close(removed)
    }

    fn close(&mut self, removed: Option<Arc<Facts>>) -> bool {
        let Some(facts) = removed else { return false };
        self.closing += 1;
        facts.evicted.cancel();
        true
    }
}

impl Connection {
    /// Somebody proved on this connection who they are. They are refused if they have their share of connections already and a request is under way on each.
    pub(crate) fn authenticated(&self, principal: &PrincipalId) -> Result<(), TooManyConnections> {
        let Slot { id, table, facts } = &*self.0;
        // The kernel lets one user in alone; there is nobody to share with.
        if facts.origin == Origin::Trusted || facts.is_of(principal) {
            return Ok(());
        }
        let mut entries = table.lock();
        let theirs = |facts: &Facts| facts.is_of(principal);
        let held = entries.authenticated.values().filter(|facts| theirs(facts)).count();
        if held >= table.limits.per_principal && !entries.evict_authenticated(theirs) {
            return Err(TooManyConnections { most: table.limits.per_principal });
        }
        *facts.principal.lock().unwrap_or_else(PoisonError::into_inner) = Some(principal.clone());
        facts.authenticated.store(true, Ordering::Relaxed);
        // It is in neither map if it was evicted a moment ago.
        if let Some(facts) = entries.unauthenticated.remove(id) {
            entries.authenticated.insert(*id, facts);
        }
        Ok(())
    }

    /// A request of this version of HTTP that is under way until the guard is dropped.
    pub(super) fn request_by(&self, version: Version) -> RequestGuard {
        // Written only when it changes, so that requests on several threads do not contend for it.
        let http1 = version < Version::HTTP_2;
        if self.0.facts.http1.load(Ordering::Relaxed) != http1 {
            self.0.facts.http1.store(http1, Ordering::Relaxed);
        }
        self.request()
    }

    /// A request that is under way until the guard is dropped.
    pub(crate) fn request(&self) -> RequestGuard {
        self.0.facts.requests.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.clone())
    }

    /// Whether nobody has authenticated here and more requests are under way than strangers may have.
    pub(super) fn is_crowded(&self) -> bool {
        let facts = &self.0.facts;
        facts.requests.load(Ordering::Relaxed) > STRANGERS_REQUESTS && !facts.authenticated.load(Ordering::Relaxed)
    }

    /// The same without its slot.
    pub(crate) fn downgrade(&self) -> ConnectionRef {
        ConnectionRef(Arc::downgrade(&self.0))
    }

    /// Waits until this connection has to give way, without holding its slot.
    pub(crate) fn evicted(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.facts.evicted.clone().cancelled_owned()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.0.facts.is_busy()
    }

    /// When it will have been idle for too long if nothing happens until then. While a request is under way that is a full period from now.
    pub(crate) fn idle_deadline(&self) -> Instant {
        let (facts, limits) = (&self.0.facts, &self.0.table.limits);
        let patient = facts.authenticated.load(Ordering::Relaxed) && !facts.http1.load(Ordering::Relaxed);
        let limit = if patient { limits.idle } else { limits.brief_idle() };
        if facts.is_busy() {
            return Instant::now() + limit;
        }
        self.0.table.epoch + Duration::from_millis(facts.idle_since.load(Ordering::Relaxed)) + limit
    }
}

impl ConnectionRef {
    /// What answers on the connection may hold unread, `make` being what a new connection may; `None` once it is gone.
    pub(crate) fn unread(&self, make: impl FnOnce() -> Unread) -> Option<Unread> {
        let slot = self.0.upgrade()?;
        Some(slot.facts.unread.get_or_init(make).clone())
    }

    /// Whether both mean one connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// Closes the connection, whatever is under way on it.
    pub(crate) fn evict(&self) {
        let Some(slot) = self.0.upgrade() else { return };
        let mut entries = slot.table.lock();
        let removed = entries.unauthenticated.remove(&slot.id).or_else(|| entries.authenticated.remove(&slot.id));
        entries.close(removed);
        // Before `slot`, which may be the last one and locks for itself.
        drop(entries);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut entries = self.table.lock();
        let held = entries.unauthenticated.remove(&self.id).or_else(|| entries.authenticated.remove(&self.id));
        if held.is_none() {
            entries.closing = entries.closing.saturating_sub(1);
            drop(entries);
            self.table.closed.notify_one();
        }
    }
}

/// A principal has as many connections as one may have, all of them busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyConnections {
    most: usize,
}

impl From<TooManyConnections> for StableErrorEnvelope {
    fn from(TooManyConnections { most }: TooManyConnections) -> Self {
        let message = format!("you have {most} connections here with a request in progress on each");
        Self::new("connections_exhausted", ErrorCategory::Availability, message)
            .hint("close some of them, or send several requests over one")
    }
}

/// Goes with a request that came when strangers had as many under way on its connection as they may. It is refused unless it shows who it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

impl Crowded {
    /// Refuses a stranger's request that came with this.
    pub(crate) fn check(with: &Extensions) -> Result<(), StableErrorEnvelope> {
        if with.get::<Self>().is_none() {
            return Ok(());
        }
        let message = format!("{STRANGERS_REQUESTS} requests without a credential are in progress on this connection");
        Err(StableErrorEnvelope::new("connections_exhausted", ErrorCategory::Availability, message)
            .hint("wait for their answers, or send a credential"))
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct RequestGuard(Connection);

impl RequestGuard {
    /// The connection now belongs to another protocol, which is busy until it ends.
    pub(super) fn upgraded(self) {
        self.0.0.facts.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let Slot { table, facts, .. } = &*self.0.0;
        facts.idle_since.store(table.now(), Ordering::Relaxed);
        facts.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
