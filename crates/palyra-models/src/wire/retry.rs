//! When and how a call is tried again.
//!
//! A call is tried again only while not one event of its answer has arrived: after that the caller has seen part of an
//! answer, and another try would give another one. Chance only spreads the waiting time; it never decides what is sent.

use std::time::Duration;

use crate::error::{ModelError, ModelErrorClass};

/// How often, and how long in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Most tries altogether; 1 means no second one.
    pub attempts: u32,
    /// Wait before the second try; it doubles each time.
    pub first_wait: Duration,
    /// Longest wait. A server that asks for more gets its error passed on instead.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 4, first_wait: Duration::from_millis(500), longest_wait: Duration::from_secs(30) }
    }
}

impl RetryPolicy {
    /// How long to wait before the next try, or that there is none. `attempt` counts from 1.
    pub(crate) fn wait(&self, attempt: u32, error: &ModelError, chance: u32) -> Option<Duration> {
        if attempt >= self.attempts.min(most_attempts(error.class)) {
            return None;
        }
        if let Some(asked) = error.retry_after_ms.map(Duration::from_millis) {
            return (asked <= self.longest_wait).then_some(asked);
        }
        let doubled = self.first_wait.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(self.longest_wait);
        // Between half and the whole of it, so that many callers do not come back at the same instant.
        let spread = f64::from(chance) / f64::from(u32::MAX) / 2.0;
        Some(doubled.mul_f64(0.5 + spread))
    }
}

/// Tries per class. A time-out has already cost its whole wait, so it is not worth many.
const fn most_attempts(class: ModelErrorClass) -> u32 {
    match class {
        ModelErrorClass::RateLimit | ModelErrorClass::Transient => u32::MAX,
        ModelErrorClass::Network => 3,
        ModelErrorClass::Timeout => 2,
        ModelErrorClass::Auth
        | ModelErrorClass::Permission
        | ModelErrorClass::Quota
        | ModelErrorClass::Permanent
        | ModelErrorClass::ContextTooLong
        | ModelErrorClass::ContentPolicy
        | ModelErrorClass::Malformed => 1,
    }
}

/// A number for spreading. Without a source of chance everybody waits the same, which is merely impolite.
pub(crate) fn chance() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(class: ModelErrorClass) -> ModelError {
        ModelError::new(class, "x")
    }

    #[test]
    fn only_errors_that_may_go_away_are_tried_again() {
        let policy = RetryPolicy::default();
        for class in ModelErrorClass::ALL {
            let again = policy.wait(1, &error(*class), 0).is_some();
            assert_eq!(again, class.retry() == palyra_common::Retry::MayHelp, "{class}");
        }
    }

    #[test]
    fn waits_double_are_spread_and_end() {
        let policy = RetryPolicy::default();
        let rate = error(ModelErrorClass::RateLimit);
        assert_eq!(policy.wait(1, &rate, 0), Some(Duration::from_millis(250)));
        assert_eq!(policy.wait(1, &rate, u32::MAX), Some(Duration::from_millis(500)));
        assert_eq!(policy.wait(3, &rate, u32::MAX), Some(Duration::from_secs(2)));
        assert_eq!(policy.wait(4, &rate, 0), None);
        let patient = RetryPolicy { attempts: 100, ..policy };
        assert_eq!(patient.wait(90, &rate, u32::MAX), Some(Duration::from_secs(30)));
    }

    #[test]
    fn the_server_may_say_how_long_within_reason() {
        let policy = RetryPolicy::default();
        let asked = |seconds| error(ModelErrorClass::RateLimit).retry_after(Duration::from_secs(seconds));
        assert_eq!(policy.wait(1, &asked(3), 0), Some(Duration::from_secs(3)));
        assert_eq!(policy.wait(1, &asked(3600), 0), None);
    }
}
