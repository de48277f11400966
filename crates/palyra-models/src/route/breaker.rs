//! A circuit breaker: closed while all is well, open while something rests, half open for one probe at a time.
//!
//! It is a value without a clock of its own: whoever asks says what time it is. One that works is thrown away by its owner, so a new
//! one stands for everything that is well.

use std::time::Duration;

use palyra_common::Timestamp;

use crate::error::{ModelError, ModelErrorClass};

/// How long others wait while somebody probes.
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// A probe that has not been heard of for so long is given up, and another may begin.
const PROBE_LIMIT: Duration = Duration::from_secs(180);
/// The same where the provider was away: a connection that is never answered must not hide that the provider is back.
const OUTAGE_PROBE_LIMIT: Duration = Duration::from_secs(1);

/// Whether something may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    /// Yes.
    Free,
    /// Yes, by one caller, to see whether it works again.
    Probe,
    /// Not before this.
    Rests { until: Timestamp, class: ModelErrorClass },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum State {
    #[default]
    Closed,
    Open {
        until: Timestamp,
    },
    Probing {
        since: Timestamp,
    },
}

/// What is known of one provider, key or model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Breaker {
    pub(super) state: State,
    /// Failures in a row while closed.
    pub(super) failures: u32,
    /// Rests in a row.
    pub(super) rests: u32,
    /// The newest failure.
    pub(super) last: Option<ModelError>,
}

impl Breaker {
    /// Whether it may be asked now.
    pub(super) fn access(&self, now: Timestamp) -> Access {
        let class = self.last.as_ref().map_or(ModelErrorClass::Transient, |error| error.class);
        match self.state {
            State::Closed => Access::Free,
            State::Open { until } if now >= until => Access::Probe,
            State::Open { until } => Access::Rests { until, class },
            State::Probing { since } if now.since(since) >= probe_limit(class) => Access::Probe,
            State::Probing { .. } => Access::Rests { until: now.plus(PROBE_WAIT), class },
        }
    }

    /// Notes that a caller probes.
    pub(super) fn probe(&mut self, now: Timestamp) {
        self.state = State::Probing { since: now };
    }

    /// The probe was given up without a result: the next caller may probe.
    pub(super) fn release(&mut self, now: Timestamp) {
        if matches!(self.state, State::Probing { .. }) {
            self.state = State::Open { until: now };
        }
    }

    /// It answers.
    pub(super) fn answers(&mut self) {
        if matches!(self.state, State::Probing { .. }) {
            self.state = State::Closed;
        }
    }

    /// It failed. It rests once it has failed `limit` times in a row, and at once if that was a probe. Calls that began before it opened and
    /// fail afterwards say nothing new: a hundred of them at once must not make the rest a hundred times longer.
    pub(super) fn failed(
        &mut self,
        now: Timestamp,
        error: &ModelError,
        caller: Caller,
        limit: u32,
        rest: impl FnOnce(u32) -> Duration,
    ) {
        self.last = Some(error.clone());
        let opens = match (&self.state, caller) {
            (State::Closed, _) => {
                self.failures = self.failures.saturating_add(1);
                self.failures >= limit
            }
            (State::Probing { .. }, Caller::Probe) => true,
            (State::Probing { .. } | State::Open { .. }, Caller::Regular) | (State::Open { .. }, Caller::Probe) => {
                false
            }
        };
        if opens {
            self.rests = self.rests.saturating_add(1);
            self.failures = 0;
            self.state = State::Open { until: now.plus(rest(self.rests)) };
        }
    }
}

/// Who reports a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// A call that was let through to see whether it works again.
    Probe,
    /// A call that began while all was well.
    Regular,
}

const fn probe_limit(class: ModelErrorClass) -> Duration {
    match class {
        ModelErrorClass::Network | ModelErrorClass::Transient => OUTAGE_PROBE_LIMIT,
        _ => PROBE_LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Duration = Duration::from_secs(10);

    fn error() -> ModelError {
        ModelError::new(ModelErrorClass::Transient, "down")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_probes_one_at_a_time() {
        let mut breaker = Breaker::default();
        breaker.failed(at(1), &error(), Caller::Regular, 2, |_| REST);
        assert_eq!(breaker.access(at(1)), Access::Free);
        breaker.failed(at(1), &error(), Caller::Regular, 2, |_| REST);
        let class = ModelErrorClass::Transient;
        assert_eq!(breaker.access(at(10)), Access::Rests { until: at(11), class });
        assert_eq!(breaker.access(at(11)), Access::Probe);
        breaker.probe(at(11));
        assert_eq!(breaker.access(at(11)), Access::Rests { until: at(12), class }, "one probe at a time");
        breaker.answers();
        assert_eq!(breaker.access(at(11)), Access::Free);
    }

    #[test]
    fn a_failed_probe_rests_again_and_longer_and_a_lost_one_is_replaced() {
        let late = ModelError::new(ModelErrorClass::Timeout, "late");
        let mut breaker = Breaker::default();
        breaker.failed(at(0), &late, Caller::Regular, 1, |times| REST * times);
        breaker.probe(at(10));
        breaker.failed(at(10), &late, Caller::Probe, 99, |times| REST * times);
        assert_eq!(breaker.access(at(29)), Access::Rests { until: at(30), class: ModelErrorClass::Timeout });
        breaker.probe(at(30));
        breaker.release(at(31));
        assert_eq!(breaker.access(at(31)), Access::Probe);
        breaker.probe(at(31));
        assert_ne!(breaker.access(at(200)), Access::Probe);
        assert_eq!(breaker.access(at(211)), Access::Probe);
    }

    #[test]
    fn failures_of_calls_that_began_before_it_opened_change_nothing() {
        let mut breaker = Breaker::default();
        let fail = |breaker: &mut Breaker, now| breaker.failed(now, &error(), Caller::Regular, 5, |times| REST * times);
        for _ in 0..500 {
            fail(&mut breaker, at(1));
        }
        assert_eq!(breaker.access(at(11)), Access::Probe, "one rest of the first length, not a hundred");
        breaker.probe(at(11));
        fail(&mut breaker, at(11));
        assert!(matches!(breaker.state, State::Probing { .. }), "somebody else's failure does not end the probe");
        breaker.answers();
        assert_eq!(breaker.access(at(11)), Access::Free);
    }

    #[test]
    fn a_probe_that_hangs_does_not_hide_that_the_provider_is_back() {
        let mut breaker = Breaker::default();
        breaker.failed(at(0), &error(), Caller::Regular, 1, |_| REST);
        breaker.probe(at(10));
        assert_ne!(breaker.access(at(10)), Access::Probe);
        assert_eq!(breaker.access(at(11)), Access::Probe, "a second later the next one tries");
    }
}
