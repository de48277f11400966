//! How often a principal may ask: a bucket of permits for each that fills at a steady rate.
//!
//! A credential with a rate of its own has a bucket of its own beside its principal's, and a request takes from both; otherwise many
//! tokens would be many times the rate. The number of buckets is bounded: a bucket that is full again is forgotten first, because
//! forgetting it changes nothing.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use palyra_common::{Clock, Digest, Timestamp};

use crate::{Principal, PrincipalId, Refusal, TokenId, Via};

/// What one request costs. A bucket counts in sixty-thousandths of a request, so that one request a minute is one unit a
/// millisecond and no fraction is ever lost.
const COST: u64 = 60_000;

/// How often principals may ask.
#[derive(Debug, Clone, Copy)]
pub struct RateOptions {
    /// Requests a minute in the long run.
    pub per_minute: NonZeroU32,
    /// Requests at once after a pause.
    pub burst: NonZeroU32,
    /// Most principals that are remembered.
    pub max_principals: usize,
}

impl Default for RateOptions {
    /// Ten a second with bursts of 200: a busy console stays far below, a loop gone wild is slowed down.
    fn default() -> Self {
        Self {
            per_minute: NonZeroU32::new(600).unwrap_or(NonZeroU32::MIN),
            burst: NonZeroU32::new(200).unwrap_or(NonZeroU32::MIN),
            max_principals: 4_096,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Principal(PrincipalId),
    Token(TokenId),
    Link(Digest),
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    units: u64,
    capacity: u64,
    per_minute: u64,
    at: Timestamp,
}

impl Bucket {
    fn full(per_minute: NonZeroU32, burst: NonZeroU32, now: Timestamp) -> Self {
        let capacity = u64::from(burst.get()) * COST;
        Self { units: capacity, capacity, per_minute: per_minute.get().into(), at: now }
    }

    /// A clock that was set back fills nothing, and does not stop what fills from then on.
    fn fill(&mut self, now: Timestamp) {
        let millis = u64::try_from(now.since(self.at).as_millis()).unwrap_or(u64::MAX);
        self.units = self.units.saturating_add(millis.saturating_mul(self.per_minute)).min(self.capacity);
        self.at = now;
    }

    /// How long until there is a permit.
    fn wait(&self) -> Duration {
        let missing = COST.saturating_sub(self.units);
        Duration::from_millis(missing.div_ceil(self.per_minute.max(1)))
    }

    fn is_full_at(mut self, now: Timestamp) -> bool {
        self.fill(now);
        self.units == self.capacity
    }
}

/// Limits how often each principal may ask.
pub struct RateLimiter {
    options: RateOptions,
    clock: Arc<dyn Clock>,
    buckets: Mutex<HashMap<Key, Bucket>>,
}

impl std::fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimiter").field("options", &self.options).finish_non_exhaustive()
    }
}

impl RateLimiter {
    /// A limiter that has seen nobody yet.
    #[must_use]
    pub fn new(options: RateOptions, clock: Arc<dyn Clock>) -> Self {
        Self { options, clock, buckets: Mutex::default() }
    }

    /// Takes one permit, or says how long to wait. A request that must wait takes nothing.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`] when there is none left.
    pub fn admit(&self, principal: &Principal) -> Result<(), Refusal> {
        let now = self.clock.now();
        // Whoever was given a link spends what the link has, not what its maker has.
        let whose = match &principal.via {
            Via::CanvasLink { link, .. } => Key::Link(*link),
            Via::UnixSocket { .. }
            | Via::LocalToken
            | Via::ApiToken { .. }
            | Via::Console { .. }
            | Via::Device { .. } => Key::Principal(principal.id.clone()),
        };
        let mut wanted = vec![(whose, self.options.per_minute, self.options.burst)];
        if let (Via::ApiToken { id, .. }, Some(rate)) = (&principal.via, principal.rate_per_minute) {
            wanted.push((Key::Token(id.clone()), rate, rate.min(self.options.burst)));
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        // Room is made before any bucket of this request is put in: a fresh one is full and would be the first to go.
        let missing = wanted.iter().filter(|(key, ..)| !buckets.contains_key(key)).count();
        let limit = self.options.max_principals.max(wanted.len());
        make_room(&mut buckets, limit.saturating_sub(missing), now);
        let mut wait = Duration::ZERO;
        for (key, per_minute, burst) in &wanted {
            let bucket = buckets.entry(key.clone()).or_insert_with(|| Bucket::full(*per_minute, *burst, now));
            bucket.fill(now);
            wait = wait.max(bucket.wait());
        }
        if !wait.is_zero() {
            return Err(Refusal::TooManyRequests { wait });
        }
        for (key, ..) in &wanted {
            if let Some(bucket) = buckets.get_mut(key) {
                bucket.units = bucket.units.saturating_sub(COST);
            }
        }
        Ok(())
    }
}

/// Forgets buckets until there are at most so many.
fn make_room(buckets: &mut HashMap<Key, Bucket>, limit: usize, now: Timestamp) {
    if buckets.len() <= limit {
        return;
    }
    buckets.retain(|_, bucket| !bucket.is_full_at(now));
    while buckets.len() > limit {
        let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(key, _)| key.clone());
        let Some(oldest) = oldest else { return };
        buckets.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::{FixedClock, PrincipalRole};
    use proptest::prelude::*;

    use super::*;

    fn number(value: u32) -> NonZeroU32 {
        NonZeroU32::new(value).unwrap()
    }

    fn limiter(per_minute: u32, burst: u32, max_principals: usize) -> (RateLimiter, FixedClock) {
        let clock = FixedClock::at(Timestamp(1_800_000_000_000));
        let options = RateOptions { per_minute: number(per_minute), burst: number(burst), max_principals };
        (RateLimiter::new(options, Arc::new(clock.clone())), clock)
    }

    fn user(uid: u32) -> Principal {
        Principal::unix_socket(uid, PrincipalRole::Operator)
    }

    fn token(uid: u32, rate: u32) -> Principal {
        let id: TokenId = "0123456789abcdef".parse().unwrap();
        let mut principal = Principal::new(
            PrincipalId::uid(uid),
            PrincipalRole::Operator,
            Via::ApiToken { id, secret: palyra_common::Digest([0; 32]) },
        );
        principal.rate_per_minute = Some(number(rate));
        principal
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let (limiter, clock) = limiter(60, 3, 16);
        for _ in 0..3 {
            limiter.admit(&user(1)).unwrap();
        }
        let wait = limiter.admit(&user(1)).unwrap_err().retry_after().unwrap();
        assert_eq!(wait, Duration::from_secs(1));
        clock.advance(wait - Duration::from_millis(1));
        assert_eq!(limiter.admit(&user(1)).unwrap_err().retry_after(), Some(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        limiter.admit(&user(1)).unwrap();
        assert!(limiter.admit(&user(1)).is_err());
        limiter.admit(&user(2)).unwrap();
    }

    #[test]
    fn a_token_is_held_to_its_own_rate_and_to_its_principals() {
        let (limiter, _) = limiter(60, 3, 16);
        limiter.admit(&token(1, 2)).unwrap();
        limiter.admit(&token(1, 2)).unwrap();
        assert!(limiter.admit(&token(1, 2)).is_err(), "its own rate is two");
        limiter.admit(&user(1)).unwrap();
        assert!(limiter.admit(&user(1)).is_err(), "the token used two of three");
    }

    #[test]
    fn who_is_remembered_is_bounded_and_the_idle_are_forgotten_first() {
        let (limiter, clock) = limiter(60, 2, 4);
        limiter.admit(&user(1)).unwrap();
        limiter.admit(&user(1)).unwrap();
        clock.advance(Duration::from_millis(1));
        for uid in 2..=4 {
            limiter.admit(&user(uid)).unwrap();
        }
        clock.advance(Duration::from_secs(1));
        // All but the first are full again; the first has one permit.
        limiter.admit(&user(5)).unwrap();
        assert!(limiter.buckets.lock().unwrap().len() <= 4);
        limiter.admit(&user(1)).unwrap();
        assert!(limiter.admit(&user(1)).is_err(), "the first was not forgotten");
        for uid in 10..1_000 {
            let _ = limiter.admit(&user(uid));
            assert!(limiter.buckets.lock().unwrap().len() <= 4);
        }
    }

    #[test]
    fn a_token_draws_on_its_principal_also_when_there_is_no_room() {
        let (limiter, clock) = limiter(60, 3, 2);
        for uid in 5..20 {
            limiter.admit(&user(uid)).unwrap();
            clock.advance(Duration::from_millis(1));
        }
        for _ in 0..3 {
            limiter.admit(&token(1, 100)).unwrap();
        }
        assert!(limiter.admit(&token(1, 100)).is_err(), "the principal's three are used up");
        assert!(limiter.buckets.lock().unwrap().len() <= 2);
    }

    proptest! {
        /// However requests are spread, no more pass than the burst and what filled meanwhile.
        #[test]
        fn no_more_pass_than_burst_and_rate(
            per_minute in 1..2_000_u32, burst in 1..50_u32, pauses in proptest::collection::vec(0..5_000_u64, 1..200)
        ) {
            let (limiter, clock) = limiter(per_minute, burst, 4);
            let (mut passed, mut elapsed) = (0_u64, 0_u64);
            for pause in pauses {
                clock.advance(Duration::from_millis(pause));
                elapsed += pause;
                passed += u64::from(limiter.admit(&user(1)).is_ok());
            }
            prop_assert!(passed <= u64::from(burst) + elapsed * u64::from(per_minute) / COST);
        }

        /// Whoever waits as told is admitted.
        #[test]
        fn waiting_as_told_helps(per_minute in 1..2_000_u32, burst in 1..20_u32) {
            let (limiter, clock) = limiter(per_minute, burst, 4);
            for _ in 0..burst + 5 {
                if let Err(refusal) = limiter.admit(&user(1)) {
                    clock.advance(refusal.retry_after().unwrap());
                    prop_assert!(limiter.admit(&user(1)).is_ok());
                }
            }
        }
    }
}
