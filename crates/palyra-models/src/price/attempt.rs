//! Whether a try that failed may have cost something.

use crate::error::{Delivery, ModelError, ModelErrorClass};

/// What a failed try has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptCost {
    /// Nothing: the server refused, and refusals are not charged.
    Nothing,
    /// Nobody knows: the request may have been worked on, and the answer was lost. Its worst case has to be counted.
    Unknown,
}

impl AttemptCost {
    /// What a try that ended with this error has cost.
    #[must_use]
    pub const fn of(error: &ModelError) -> Self {
        if matches!(error.delivery, Delivery::NotSent) {
            return Self::Nothing;
        }
        match (error.class, error.status) {
            // An answer with an error status is no model's answer.
            (_, Some(400..)) => Self::Nothing,
            (
                ModelErrorClass::Auth
                | ModelErrorClass::Permission
                | ModelErrorClass::RateLimit
                | ModelErrorClass::Quota
                | ModelErrorClass::Permanent
                | ModelErrorClass::ContextTooLong,
                _,
            ) => Self::Nothing,
            (
                ModelErrorClass::Transient
                | ModelErrorClass::ContentPolicy
                | ModelErrorClass::Malformed
                | ModelErrorClass::Network
                | ModelErrorClass::Timeout,
                _,
            ) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_free_and_lost_answers_are_not() {
        for (class, status, cost) in [
            (ModelErrorClass::RateLimit, Some(429), AttemptCost::Nothing),
            (ModelErrorClass::Transient, Some(503), AttemptCost::Nothing),
            (ModelErrorClass::Transient, None, AttemptCost::Unknown),
            (ModelErrorClass::Network, None, AttemptCost::Unknown),
            (ModelErrorClass::Timeout, None, AttemptCost::Unknown),
            (ModelErrorClass::Malformed, Some(200), AttemptCost::Unknown),
            (ModelErrorClass::ContentPolicy, None, AttemptCost::Unknown),
            (ModelErrorClass::Auth, None, AttemptCost::Nothing),
        ] {
            let mut error = ModelError::new(class, "x");
            error.status = status;
            assert_eq!(AttemptCost::of(&error), cost, "{class} {status:?}");
            assert_eq!(AttemptCost::of(&error.not_sent()), AttemptCost::Nothing, "what was never sent costs nothing");
        }
    }
}
