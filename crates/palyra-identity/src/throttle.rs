//! Failed attempts to log in: the more of them come from one place, the longer that place waits.
//!
//! A few mistakes cost nothing; then each one doubles the wait. The number of places is bounded. When it is used up, places that are
//! not known yet share one count: somebody with many addresses slows down newcomers, never those who are already known.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use palyra_common::{Clock, Timestamp};

use crate::Refusal;

/// Where an attempt comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// An address. Of IPv6 only the network counts, because one customer has 2⁶⁴ addresses.
    Network(IpAddr),
    /// A user of this machine.
    Uid(u32),
    /// Everybody for whom there was no room.
    Others,
}

impl Source {
    /// The place that an address belongs to.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Self::Network(IpAddr::V6(Ipv6Addr::from(network)))
            }
            v4 => Self::Network(v4),
        }
    }
}

/// How failures are answered.
#[derive(Debug, Clone, Copy)]
pub struct ThrottleOptions {
    /// Failures that cost nothing.
    pub free_failures: u32,
    /// The wait after the first one that does.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// After how long without a failure everything is forgotten.
    pub forget_after: Duration,
    /// Most places that are remembered.
    pub max_sources: usize,
}

impl Default for ThrottleOptions {
    fn default() -> Self {
        Self {
            free_failures: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(15 * 60),
            forget_after: Duration::from_secs(60 * 60),
            max_sources: 4_096,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Timestamp,
}

/// Counts failed attempts and says who has to wait.
pub struct Throttle {
    options: ThrottleOptions,
    clock: Arc<dyn Clock>,
    sources: Mutex<HashMap<Source, Failures>>,
}

impl std::fmt::Debug for Throttle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Throttle").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Throttle {
    /// A throttle that has seen nobody yet.
    #[must_use]
    pub fn new(options: ThrottleOptions, clock: Arc<dyn Clock>) -> Self {
        Self { options, clock, sources: Mutex::default() }
    }

    /// Whether an attempt from there is looked at now.
    ///
    /// # Errors
    /// [`Refusal::Throttled`] while it has to wait.
    pub fn check(&self, source: Source) -> Result<(), Refusal> {
        let now = self.clock.now();
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = self.place(&sources, source);
        let Some(failures) = sources.get(&counted).filter(|failures| !self.is_forgotten(failures, now)) else {
            return Ok(());
        };
        let wait = self.wait_after(failures.count).saturating_sub(now.since(failures.last));
        if wait.is_zero() { Ok(()) } else { Err(Refusal::Throttled { wait }) }
    }

    /// Counts a failure.
    pub fn failed(&self, source: Source) {
        let now = self.clock.now();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if self.place(&sources, source) != source {
            sources.retain(|_, failures| !self.is_forgotten(failures, now));
        }
        let counted = self.place(&sources, source);
        let failures = sources.entry(counted).or_insert(Failures { count: 0, last: now });
        if self.is_forgotten(failures, now) {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
    }

    /// Forgets the failures of a place, because somebody there turned out to be known. What others share is not forgotten so.
    pub fn succeeded(&self, source: Source) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).remove(&source);
    }

    /// Under whom a place is counted.
    fn place(&self, sources: &HashMap<Source, Failures>, source: Source) -> Source {
        let has_room = sources.len() < self.options.max_sources;
        if sources.contains_key(&source) || has_room { source } else { Source::Others }
    }

    fn is_forgotten(&self, failures: &Failures, now: Timestamp) -> bool {
        now.since(failures.last) >= self.options.forget_after.max(self.options.longest_wait)
    }

    fn wait_after(&self, count: u32) -> Duration {
        match count.checked_sub(self.options.free_failures) {
            None | Some(0) => Duration::ZERO,
            Some(beyond) => {
                let factor = 1_u32.checked_shl(beyond - 1).unwrap_or(u32::MAX);
                self.options.first_wait.saturating_mul(factor).min(self.options.longest_wait)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::FixedClock;

    use super::*;

    fn throttle(max_sources: usize) -> (Throttle, FixedClock) {
        let clock = FixedClock::at(Timestamp(1_800_000_000_000));
        let options = ThrottleOptions { max_sources, ..ThrottleOptions::default() };
        (Throttle::new(options, Arc::new(clock.clone())), clock)
    }

    fn waits(throttle: &Throttle, source: Source) -> Duration {
        throttle.check(source).err().and_then(|refusal| refusal.retry_after()).unwrap_or_default()
    }

    #[test]
    fn the_wait_doubles_up_to_a_limit_and_is_forgotten() {
        let (throttle, clock) = throttle(16);
        let source = Source::Uid(1);
        let mut seen = Vec::new();
        for _ in 0..60 {
            throttle.failed(source);
            seen.push(waits(&throttle, source).as_secs());
        }
        assert_eq!(seen[..11], [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32]);
        assert_eq!(seen[59], 15 * 60, "it never overflows");
        clock.advance(Duration::from_secs(15 * 60 - 1));
        assert_eq!(waits(&throttle, source), Duration::from_secs(1));
        clock.advance(Duration::from_secs(1));
        assert_eq!(waits(&throttle, source), Duration::ZERO);
        throttle.failed(source);
        assert_eq!(waits(&throttle, source).as_secs(), 15 * 60, "the next failure still counts");
        clock.advance(Duration::from_secs(60 * 60));
        throttle.failed(source);
        assert_eq!(waits(&throttle, source), Duration::ZERO, "after an hour it starts anew");
    }

    #[test]
    fn success_forgets() {
        let (throttle, _) = throttle(16);
        (0..9).for_each(|_| throttle.failed(Source::Uid(1)));
        assert!(throttle.check(Source::Uid(1)).is_err());
        assert!(throttle.check(Source::Uid(2)).is_ok());
        throttle.succeeded(Source::Uid(1));
        assert!(throttle.check(Source::Uid(1)).is_ok());
    }

    #[test]
    fn addresses_of_one_network_are_one_place() {
        let of = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn many_places_are_bounded_and_share_a_count() {
        let (throttle, clock) = throttle(8);
        (0..9).for_each(|_| throttle.failed(Source::Uid(0)));
        for uid in 1..1_000 {
            throttle.failed(Source::Uid(uid));
        }
        assert!(throttle.sources.lock().unwrap().len() <= 9, "the limit and the shared count");
        assert!(throttle.check(Source::Uid(5_000)).is_err(), "newcomers wait");
        assert!(throttle.check(Source::Uid(3)).is_ok(), "who is known with one failure does not");
        throttle.succeeded(Source::Uid(5_000));
        assert!(throttle.check(Source::Uid(5_000)).is_err(), "one success does not clear the shared count");
        clock.advance(Duration::from_secs(60 * 60));
        assert!(throttle.check(Source::Uid(5_000)).is_ok());
        throttle.failed(Source::Uid(5_000));
        assert!(throttle.sources.lock().unwrap().len() <= 2, "what is forgotten makes room");
    }
}
