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
            State::Probing { since } if now.since(since) >= PROBE_LIMIT => Access::Probe,
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

    /// It failed. It rests once it has failed `limit` times in a row, and at once if that was a probe.
    pub(super) fn failed(
        &mut self,
        now: Timestamp,
        error: &ModelError,
        limit: u32,
        rest: impl FnOnce(u32) -> Duration,
    ) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(error.clone());
        let was_probe = matches!(self.state, State::Probing { .. });
        if was_probe || self.failures >= limit {
            self.rests = self.rests.saturating_add(1);
            self.failures = 0;
            self.state = State::Open { until: now.plus(rest(self.rests)) };
        }
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
        breaker.failed(at(1), &error(), 2, |_| REST);
        assert_eq!(breaker.access(at(1)), Access::Free);
        breaker.failed(at(1), &error(), 2, |_| REST);
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
        let mut breaker = Breaker::default();
        breaker.failed(at(0), &error(), 1, |times| REST * times);
        breaker.probe(at(10));
        breaker.failed(at(10), &error(), 99, |times| REST * times);
        assert_eq!(breaker.access(at(29)), Access::Rests { until: at(30), class: ModelErrorClass::Transient });
        breaker.probe(at(30));
        breaker.release(at(31));
        assert_eq!(breaker.access(at(31)), Access::Probe);
        breaker.probe(at(31));
        assert_ne!(breaker.access(at(200)), Access::Probe);
        assert_eq!(breaker.access(at(211)), Access::Probe);
    }
}
