//! When a program is known not to have run.
//!
//! A file whose last change lies in such a period was changed by somebody else: programs cannot set the time of a file's last status change.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// File systems stamp changes with a clock that ticks at least this often, so a stamp may be this much older than the change.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Periods that are remembered. A program that wakes up all day long makes many; the oldest are then forgotten, and changes in them count as the program's.
const MOST: usize = 16_384;

/// The periods in which the program of one call did not run, written by whoever observes it and read when its changes are looked for.
#[derive(Debug, Clone, Default)]
pub struct IdlePeriods(Arc<Mutex<Periods>>);

#[derive(Debug, Default)]
struct Periods {
    /// In order, and apart from each other.
    within: VecDeque<(SystemTime, SystemTime)>,
    /// When it was over.
    over: Option<SystemTime>,
}

impl IdlePeriods {
    /// Adds a period that begins no earlier than those before it.
    pub fn add(&self, from: SystemTime, until: SystemTime) {
        let mut periods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match periods.within.back_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => periods.within.push_back((from, until)),
        }
        if periods.within.len() > MOST {
            periods.within.pop_front();
        }
    }

    /// Notes that the program and everything it started is gone by now.
    pub fn ended(&self) {
        let mut periods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        periods.over.get_or_insert_with(SystemTime::now);
    }

    /// Whether the program certainly did not run when changes with stamps between the two were made.
    pub(super) fn cover(&self, first: SystemTime, last: SystemTime) -> bool {
        let periods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if periods.over.is_some_and(|over| over < first) {
            return true;
        }
        let after = periods.within.partition_point(|(from, _)| *from < first);
        let candidate = after.checked_sub(1).and_then(|index| periods.within.get(index));
        candidate.is_some_and(|(_, until)| last + TICK <= *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_wholly_in_a_period_is_covered() {
        let at = |millis: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let periods = IdlePeriods::default();
        assert!(!periods.cover(at(0), at(0)));
        periods.add(at(100), at(200));
        periods.add(at(200), at(300));
        periods.add(at(400), at(500));
        assert!(periods.cover(at(101), at(280)), "periods that touch are one");
        for (first, last) in [(100, 100), (101, 281), (50, 50), (290, 450), (350, 350), (490, 490)] {
            assert!(!periods.cover(at(first), at(last)), "{first} to {last}");
        }
        assert!(periods.cover(at(450), at(450)));
        periods.ended();
        assert!(periods.cover(SystemTime::now() + TICK, SystemTime::now() + TICK));
    }
}
