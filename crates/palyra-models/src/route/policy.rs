//! What is done about a failed try, by class. This table is the whole policy; `walk` only carries it out.
//!
//! | class | the same target again | what rests | another target |
//! | --- | --- | --- | --- |
//! | `auth`, `permission`, `quota` | with another key at once | the key (for `permission` with this model only) | when no key is left |
//! | `rate_limit` | with another key at once; with the same one after the wait the server asks for | the key, that long | when no key is ready within two seconds |
//! | `transient`, `network` | after a spread wait | the provider, once it has failed several times in a row, for a second at most | after the tries are used up |
//! | `timeout`, `malformed` | once more | likewise, for half a minute at most | likewise |
//! | `permanent` with 400, 413 or 422: the request itself is refused | no | nothing | no: it would be refused again |
//! | `permanent` otherwise: no such model, no model server | no | the model with this key | yes |
//! | `context_too_long` | no | nothing | only one with a larger window |
//! | `content_policy` | no | nothing | no: another provider is not a way around a refusal |
//!
//! A key that could not be read counts as `auth`. Waits are spread over their whole length (full jitter).
//!
//! An outage ([`is_outage`]: nobody listens, or a gateway says that the server is away) of a provider that has answered before uses up no tries.
//! The call waits for the provider to come back, with a probe every second, for as long as whoever made the call waits for it. A provider that
//! never answered is more likely configured wrongly, and the call fails once its tries are used up.

use std::time::Duration;

use crate::error::{Delivery, ModelError, ModelErrorClass};

/// What happens when an answer breaks off after part of it was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterOutput {
    /// The turn is started over; [`crate::ModelEvent::Attempted`] tells the consumer to drop what it has.
    StartOver,
    /// The error is passed on.
    GiveUp,
}

/// How patient a router is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePolicy {
    /// Most tries of one target in one call.
    pub tries_per_target: u32,
    /// Most of them while another target is ready.
    pub tries_before_another: u32,
    /// Most tries in one call.
    pub most_tries: u32,
    /// Longest wait before a second try; it doubles each time.
    pub first_wait: Duration,
    /// Longest wait for the same target while another one is ready.
    pub short_wait: Duration,
    /// Longest single wait. A server that asks for more is left alone.
    pub longest_wait: Duration,
    /// Longest time that one call spends waiting, all waits together.
    pub patience: Duration,
    /// Failures in a row after which a provider rests.
    pub failures_to_rest: u32,
    /// First rest of a provider that is away; it doubles each time.
    pub first_outage_rest: Duration,
    /// Longest rest of a provider that is away. It bounds how late a call notices that the provider is back.
    pub longest_outage_rest: Duration,
    /// Longest time that one call waits for a provider that has answered before to come back. By default there is no end to it: whoever makes the call has a
    /// deadline of their own.
    pub outage_patience: Duration,
    /// First rest of a provider whose answers come too late or make no sense; it doubles each time, up to `longest_wait`.
    pub first_rest: Duration,
    /// Longest rest of a key or a model.
    pub longest_rest: Duration,
    /// What happens when an answer breaks off.
    pub after_output: AfterOutput,
    /// How often a turn is started over after part of it was passed on.
    pub most_restarts: u32,
}

impl Default for RoutePolicy {
    fn default() -> Self {
        Self {
            tries_per_target: 4,
            tries_before_another: 2,
            most_tries: 12,
            first_wait: Duration::from_millis(1000),
            short_wait: Duration::from_secs(2),
            longest_wait: Duration::from_secs(30),
            patience: Duration::from_secs(90),
            failures_to_rest: 5,
            first_outage_rest: Duration::from_millis(250),
            longest_outage_rest: Duration::from_secs(1),
            outage_patience: Duration::MAX,
            first_rest: Duration::from_secs(5),
            longest_rest: Duration::from_secs(300),
            after_output: AfterOutput::StartOver,
            most_restarts: 2,
        }
    }
}

/// How much of an account a failure says something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// Nothing but this request.
    Request,
    /// The key.
    Credential,
    /// The key together with this model.
    Model,
    /// Everything at this provider.
    Provider,
}

/// Who else may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    /// Anybody.
    Anyone,
    /// Whoever has a larger window.
    LargerWindow,
    /// Nobody.
    Nobody,
}

/// What is to be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) blame: Blame,
    pub(super) onward: Onward,
    /// Most tries of the same target, whatever the policy allows.
    pub(super) tries: u32,
}

/// The table above.
pub(super) const fn course(error: &ModelError) -> Course {
    use ModelErrorClass as Class;
    let (blame, onward, tries) = match error.class {
        Class::Auth | Class::Quota => (Blame::Credential, Onward::Anyone, 1),
        Class::Permission => (Blame::Model, Onward::Anyone, 1),
        Class::RateLimit => (Blame::Credential, Onward::Anyone, u32::MAX),
        Class::Transient | Class::Network => (Blame::Provider, Onward::Anyone, u32::MAX),
        Class::Timeout | Class::Malformed => (Blame::Provider, Onward::Anyone, 2),
        Class::Permanent => match error.status {
            Some(400 | 413 | 422) => (Blame::Request, Onward::Nobody, 1),
            _ => (Blame::Model, Onward::Anyone, 1),
        },
        Class::ContextTooLong => (Blame::Request, Onward::LargerWindow, 1),
        Class::ContentPolicy => (Blame::Request, Onward::Nobody, 1),
    };
    Course { blame, onward, tries }
}

/// Whether only a person can mend it. Such a rest spares needless calls while there is somebody else to ask; it is no reason to
/// refuse a call when there is nobody, since the person may just have mended it.
pub(super) const fn needs_a_person(class: ModelErrorClass) -> bool {
    use ModelErrorClass as Class;
    matches!(class, Class::Auth | Class::Permission | Class::Quota | Class::Permanent)
}

/// Whether the provider itself is away, whatever it was asked: nobody listens, or a gateway says so in its stead.
pub(super) const fn is_outage(error: &ModelError) -> bool {
    match error.class {
        ModelErrorClass::Network => matches!(error.delivery, Delivery::NotSent),
        ModelErrorClass::Transient => matches!(error.status, Some(502..=504 | 529)),
        _ => false,
    }
}

impl RoutePolicy {
    /// A wait before the next try at a provider that is away. At least half of it is kept, so that the tries of a call last longer than a
    /// restart of the server takes.
    pub(super) fn outage_wait(&self, tries: u32, chance: u32) -> Duration {
        let whole = self.spread_wait(tries, u32::MAX);
        whole.mul_f64(0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0)
    }

    /// A wait before the next try, spread over its whole length. `tries` counts those made, from 1.
    pub(super) fn spread_wait(&self, tries: u32, chance: u32) -> Duration {
        let whole =
            self.first_wait.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(self.longest_wait);
        whole.mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }

    /// How long whoever is to blame rests. `times` counts rests in a row, from 1.
    pub(super) fn rest(&self, error: &ModelError, times: u32, chance: u32) -> Duration {
        use ModelErrorClass as Class;
        let of_provider = matches!(course(error).blame, Blame::Provider);
        if let Some(asked) = error.retry_after_ms {
            // Within reason: nobody is locked out for a week by one header, and a provider not for longer than a call waits.
            let most = if of_provider { self.longest_wait } else { Duration::from_secs(3600) };
            return Duration::from_millis(asked).min(most);
        }
        let (usual, longest) = match error.class {
            Class::RateLimit => return self.spread_wait(times, chance),
            Class::Quota => (Duration::from_secs(300), self.longest_rest),
            Class::Auth | Class::Permission | Class::Permanent => (Duration::from_secs(60), self.longest_rest),
            Class::Transient | Class::Network => (self.first_outage_rest, self.longest_outage_rest),
            Class::Timeout | Class::Malformed | Class::ContextTooLong | Class::ContentPolicy => {
                (self.first_rest, self.longest_wait)
            }
        };
        usual.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1))).min(longest.max(usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_as_documented() {
        use ModelErrorClass as Class;
        let of = |class| course(&ModelError::new(class, "x"));
        for class in Class::ALL {
            let Course { blame, onward, tries } = of(*class);
            // What may go away by itself is tried again; what needs a person never is.
            assert_eq!(tries > 1, !needs_a_person(*class) && onward == Onward::Anyone, "{class}");
            assert_eq!(blame == Blame::Request, onward != Onward::Anyone, "{class}");
        }
        assert_eq!(of(Class::ContextTooLong).onward, Onward::LargerWindow);
        assert_eq!(of(Class::ContentPolicy).onward, Onward::Nobody);
        let refused = ModelError::new(Class::Permanent, "x").status(422);
        assert_eq!(course(&refused).onward, Onward::Nobody);
        assert_eq!(course(&refused.status(404)).onward, Onward::Anyone);
    }

    #[test]
    fn waits_double_are_spread_over_their_whole_length_and_end() {
        let policy = RoutePolicy::default();
        assert_eq!(policy.spread_wait(1, 0), Duration::ZERO);
        assert_eq!(policy.spread_wait(1, u32::MAX), Duration::from_secs(1));
        assert_eq!(policy.spread_wait(3, u32::MAX), Duration::from_secs(4));
        assert_eq!(policy.spread_wait(90, u32::MAX), Duration::from_secs(30));
    }

    #[test]
    fn rests_grow_with_repetition_and_follow_the_server_within_reason() {
        let policy = RoutePolicy::default();
        let rest = |class, times| policy.rest(&ModelError::new(class, "x"), times, u32::MAX);
        assert_eq!(rest(ModelErrorClass::Transient, 1), Duration::from_millis(250));
        assert_eq!(
            rest(ModelErrorClass::Network, 60),
            Duration::from_secs(1),
            "it is noticed within a second that it is back"
        );
        assert_eq!(rest(ModelErrorClass::Timeout, 1), Duration::from_secs(5));
        assert_eq!(rest(ModelErrorClass::Timeout, 60), Duration::from_secs(30));
        assert_eq!(rest(ModelErrorClass::Auth, 1), Duration::from_secs(60));
        let asked = |seconds| {
            let error = ModelError::new(ModelErrorClass::RateLimit, "x").retry_after(Duration::from_secs(seconds));
            policy.rest(&error, 1, 0)
        };
        assert_eq!(asked(7), Duration::from_secs(7));
        assert_eq!(asked(1_000_000), Duration::from_secs(3600));
        let away = ModelError::new(ModelErrorClass::Transient, "x").status(503).retry_after(Duration::from_secs(600));
        assert_eq!(policy.rest(&away, 1, 0), Duration::from_secs(30), "no longer than a call waits");
    }

    #[test]
    fn an_outage_is_the_providers_and_not_the_requests() {
        use ModelErrorClass as Class;
        let error = |class| ModelError::new(class, "x");
        assert!(is_outage(&error(Class::Network).not_sent()));
        assert!(
            [502, 503, 504, 529].map(|status| is_outage(&error(Class::Transient).status(status))).iter().all(|is| *is)
        );
        assert!(!is_outage(&error(Class::Network)), "this one may have been worked on");
        assert!(!is_outage(&error(Class::Transient).status(500)), "this one may be the request's fault");
        assert!(!is_outage(&error(Class::Timeout).not_sent()));
    }

    #[test]
    fn tries_at_a_server_that_restarts_last_longer_than_the_restart() {
        let policy = RoutePolicy::default();
        let least: Duration = (1..policy.tries_per_target).map(|tries| policy.outage_wait(tries, 0)).sum();
        assert!(least >= Duration::from_secs(3), "{least:?}");
        assert_eq!(policy.outage_wait(1, u32::MAX), Duration::from_secs(1));
    }
}
