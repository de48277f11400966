//! Time as a value. The engine never reads the system clock itself; it is handed a [`Clock`].

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This instant moved forward by a duration.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This instant on a clock that was set by so many milliseconds.
    #[must_use]
    pub fn shifted(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// `2026-11-15T08:09:10.123Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let days = self.0.div_euclid(86_400_000);
        let in_day = self.0.rem_euclid(86_400_000);
        let (year, month, day) = civil_from_days(days);
        let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
        let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Gregorian date of a day number counted from 1970-01-01, by counting 400-year eras that start on 1 March.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Where "now" comes from.
pub trait Clock: Send + Sync + 'static {
    /// The current instant.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment, whatever anybody sets the clock to (`CLOCK_MONOTONIC`). It stands still while the machine is suspended.
    fn monotonic(&self) -> Duration;

    /// The same including the time in which the machine was suspended (`CLOCK_BOOTTIME`). Its fixed moment may be another one.
    fn boottime(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        ORIGIN.elapsed()
    }

    fn boottime(&self) -> Duration {
        #[cfg(target_os = "linux")]
        {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
        }
        // Elsewhere a suspended machine looks like a clock that was set.
        #[cfg(not(target_os = "linux"))]
        self.monotonic()
    }
}

/// A clock that moves only when told to; clones share the same hands.
#[derive(Debug, Clone, Default)]
pub struct FixedClock {
    wall: Arc<AtomicI64>,
    /// By how much it was set, without time having passed.
    stepped: Arc<AtomicI64>,
    /// How long the machine was suspended.
    suspended: Arc<AtomicI64>,
}

impl FixedClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self { wall: Arc::new(AtomicI64::new(now.0)), ..Self::default() }
    }

    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        self.wall.fetch_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets the clock forward or back by so many milliseconds, without any time passing.
    pub fn step(&self, millis: i64) {
        self.stepped.fetch_add(millis, Ordering::SeqCst);
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }

    /// Suspends the machine for so long and wakes it up again.
    pub fn suspend(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.suspended.fetch_add(millis, Ordering::SeqCst);
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.boottime()
            .saturating_sub(Duration::from_millis(u64::try_from(self.suspended.load(Ordering::SeqCst)).unwrap_or(0)))
    }

    fn boottime(&self) -> Duration {
        let passed = self.wall.load(Ordering::SeqCst).saturating_sub(self.stepped.load(Ordering::SeqCst));
        Duration::from_millis(u64::try_from(passed).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_gregorian() {
        assert_eq!(Timestamp(0).to_rfc3339(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(951_782_400_000).to_rfc3339(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Timestamp(1_794_700_000_123).to_rfc3339(), "2026-11-14T23:46:40.123Z");
        assert_eq!(Timestamp(-1).to_rfc3339(), "1969-12-31T23:59:59.999Z");
    }
}
