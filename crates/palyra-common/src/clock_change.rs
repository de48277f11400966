//! Tells a machine that was suspended from a clock that somebody set.
//!
//! Three clocks of the kernel are compared. A suspend moves the boot time against the monotonic clock, and the wall clock together with the boot time. A clock that
//! is set moves against the boot time and leaves the other two alone. Time that simply passes moves all three alike.

use std::time::Duration;

use crate::{Clock, Timestamp};

/// How far two clocks may drift apart before it counts: more than correcting them ever does at once.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);
/// Three clocks that were read within so much time were read at the same moment.
const READING: Duration = Duration::from_millis(100);
/// A machine that is suspended between any two of so many readings is not at work.
const READINGS: usize = 5;

/// Something other than the passing of time that moved a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockChange {
    /// The machine was suspended.
    Suspended {
        /// For so many milliseconds.
        millis: i64,
    },
    /// Somebody set the clock.
    Set {
        /// Forward by so many milliseconds; less than zero for back.
        millis: i64,
    },
}

/// How far the clocks are apart at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffsets {
    /// The wall clock ahead of the boot time, in milliseconds.
    wall: i64,
    /// The boot time ahead of the monotonic clock, in milliseconds.
    boottime: i64,
}

impl ClockOffsets {
    /// The offsets now.
    #[must_use]
    pub fn read(clock: &dyn Clock) -> Self {
        let mut left = READINGS;
        loop {
            let before = clock.boottime();
            let offsets = Self::of(clock.now(), clock.monotonic(), clock.boottime());
            left = left.saturating_sub(1);
            if left == 0 || clock.boottime().saturating_sub(before) < READING {
                return offsets;
            }
        }
    }

    /// The offsets of three clocks that were read at the same moment.
    #[must_use]
    pub fn of(wall: Timestamp, monotonic: Duration, boottime: Duration) -> Self {
        let boottime = millis(boottime);
        Self { wall: wall.0.saturating_sub(boottime), boottime: boottime.saturating_sub(millis(monotonic)) }
    }

    /// What happened between an earlier moment and this one, at most one change of each kind: the suspend first, because a clock is set by somebody who is awake.
    /// Differences below [`CLOCK_TOLERANCE`] are none.
    pub fn changes_since(self, earlier: Self) -> impl Iterator<Item = ClockChange> {
        let suspended = self.boottime.saturating_sub(earlier.boottime);
        let set = self.wall.saturating_sub(earlier.wall);
        let suspended = is_change(suspended).then_some(ClockChange::Suspended { millis: suspended });
        let set = is_change(set).then_some(ClockChange::Set { millis: set });
        suspended.into_iter().chain(set)
    }

    /// These offsets with a change in them, for whoever has taken notice of it. What is below the tolerance adds up until it is noticed.
    #[must_use]
    pub fn with(self, change: ClockChange) -> Self {
        match change {
            ClockChange::Suspended { millis } => Self { boottime: self.boottime.saturating_add(millis), ..self },
            ClockChange::Set { millis } => Self { wall: self.wall.saturating_add(millis), ..self },
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn is_change(millis: i64) -> bool {
    u128::from(millis.unsigned_abs()) >= CLOCK_TOLERANCE.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FixedClock, SystemClock};

    const HOUR: i64 = 3_600_000;

    /// What is found when the wall clock, the monotonic clock and the boot time went on by so many milliseconds.
    fn found(wall: i64, monotonic: i64, boottime: i64) -> Vec<ClockChange> {
        let at = |millis: i64| Duration::from_millis(u64::try_from(10 * HOUR + millis).unwrap());
        let (start, now) = (Timestamp(1_794_700_000_000), Timestamp(1_794_700_000_000 + wall));
        let earlier = ClockOffsets::of(start, at(0), at(0));
        ClockOffsets::of(now, at(monotonic), at(boottime)).changes_since(earlier).collect()
    }

    #[test]
    fn a_suspend_is_told_from_a_clock_that_was_set() {
        let suspended = |millis| ClockChange::Suspended { millis };
        let set = |millis| ClockChange::Set { millis };
        for (wall, monotonic, boottime, expected) in [
            (0, 0, 0, vec![]),
            (HOUR, HOUR, HOUR, vec![]),
            (HOUR + 1_999, HOUR, HOUR, vec![]),
            (HOUR - 1_999, HOUR, HOUR, vec![]),
            (HOUR, HOUR, HOUR + 1_999, vec![]),
            (HOUR, 0, HOUR, vec![suspended(HOUR)]),
            (2 * HOUR, HOUR, 2 * HOUR, vec![suspended(HOUR)]),
            (HOUR + 2_000, HOUR, HOUR + 2_000, vec![suspended(2_000)]),
            (HOUR, 0, 0, vec![set(HOUR)]),
            (-HOUR, 0, 0, vec![set(-HOUR)]),
            (3 * HOUR, HOUR, HOUR, vec![set(2 * HOUR)]),
            // Suspended for an hour, and the clock was put right afterwards.
            (0, 0, HOUR, vec![suspended(HOUR), set(-HOUR)]),
            (3 * HOUR, 0, HOUR, vec![suspended(HOUR), set(2 * HOUR)]),
        ] {
            assert_eq!(found(wall, monotonic, boottime), expected, "{wall} {monotonic} {boottime}");
        }
    }

    #[test]
    fn small_differences_add_up_and_a_change_is_found_once() {
        let clock = FixedClock::at(Timestamp(1_794_700_000_000));
        let known = ClockOffsets::read(&clock);
        clock.step(1_500);
        assert_eq!(ClockOffsets::read(&clock).changes_since(known).count(), 0);
        clock.step(1_500);
        clock.suspend(Duration::from_secs(3));
        let now = ClockOffsets::read(&clock);
        let changes: Vec<_> = now.changes_since(known).collect();
        assert_eq!(changes, [ClockChange::Suspended { millis: 3_000 }, ClockChange::Set { millis: 3_000 }]);
        let known = changes.iter().fold(known, |known, change| known.with(*change));
        assert_eq!(known, now);
    }

    /// A clock that is suspended for an hour while it is read for the first time.
    struct SuspendedWhileRead {
        clock: FixedClock,
        reads: std::sync::atomic::AtomicU32,
    }

    impl Clock for SuspendedWhileRead {
        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        fn monotonic(&self) -> Duration {
            let reads = self.reads.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            if reads == 0 {
                self.clock.suspend(Duration::from_secs(3600));
            }
            self.clock.monotonic()
        }

        fn boottime(&self) -> Duration {
            self.clock.boottime()
        }
    }

    #[test]
    fn a_suspend_in_the_middle_of_a_reading_is_no_clock_that_was_set() {
        let clock = FixedClock::at(Timestamp(1_794_700_000_000));
        let known = ClockOffsets::read(&clock);
        let read = ClockOffsets::read(&SuspendedWhileRead { clock, reads: 0.into() });
        let changes: Vec<_> = read.changes_since(known).collect();
        assert_eq!(changes, [ClockChange::Suspended { millis: HOUR }]);
    }

    #[test]
    fn the_machines_clocks_agree_while_nobody_touches_them() {
        let (known, before) = (ClockOffsets::read(&SystemClock), SystemClock.boottime());
        std::thread::sleep(Duration::from_millis(20));
        assert!(SystemClock.boottime() > before);
        assert_eq!(ClockOffsets::read(&SystemClock).changes_since(known).count(), 0);
    }
}
