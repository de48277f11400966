//! How patient calls of one account are: what `models.toml` says about it, above what holds for all.

use std::time::Duration;

use serde::Serialize;

use crate::wire::Timeouts;

/// Fewest and most seconds that can be meant. More than a day is a mistake in the unit.
pub(super) const SECONDS: std::ops::RangeInclusive<u32> = 1..=86_400;

/// Patience with one account, in seconds; whatever is not said is as for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AccountTimeouts {
    /// Longest wait for a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_seconds: Option<u32>,
    /// Longest wait for the first byte of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_seconds: Option<u32>,
    /// Longest silence between two parts of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_chunks_seconds: Option<u32>,
    /// Longest time for a whole call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_seconds: Option<u32>,
}

impl AccountTimeouts {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is said under each name of the file.
    pub(super) const fn named(&self) -> [(&'static str, Option<u32>); 4] {
        [
            ("connect_seconds", self.connect_seconds),
            ("first_byte_seconds", self.first_byte_seconds),
            ("between_chunks_seconds", self.between_chunks_seconds),
            ("total_seconds", self.total_seconds),
        ]
    }

    /// The phase that is given more time than the whole call, if there is one.
    pub(super) fn longer_than_total(&self) -> Option<&'static str> {
        let total = self.total_seconds?;
        let mut phases = self.named().into_iter().filter(|(_, seconds)| seconds.is_some_and(|seconds| seconds > total));
        phases.next().map(|(name, _)| name)
    }

    /// The clocks of a call. Who may wait longer for a first byte than calls usually last has a call that lasts as long.
    #[must_use]
    pub fn over(&self, usual: Timeouts) -> Timeouts {
        let or = |seconds: Option<u32>, usual| seconds.map_or(usual, |seconds| Duration::from_secs(u64::from(seconds)));
        let connect = or(self.connect_seconds, usual.connect);
        let first_byte = or(self.first_byte_seconds, usual.first_byte);
        let between_chunks = or(self.between_chunks_seconds, usual.between_chunks);
        let least = connect.saturating_add(first_byte).max(between_chunks);
        Timeouts { connect, first_byte, between_chunks, total: or(self.total_seconds, usual.total.max(least)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_stands_above_what_is_usual() {
        let usual = Timeouts::default();
        assert_eq!(AccountTimeouts::default().over(usual), usual);
        let slow = AccountTimeouts { first_byte_seconds: Some(3_600), ..AccountTimeouts::default() }.over(usual);
        assert_eq!((slow.connect, slow.first_byte), (usual.connect, Duration::from_secs(3_600)));
        assert_eq!(slow.total, Duration::from_secs(3_610), "a call lasts as long as its parts may");
        let short = AccountTimeouts { total_seconds: Some(5), ..AccountTimeouts::default() }.over(usual);
        assert_eq!(short.total, Duration::from_secs(5));
    }

    #[test]
    fn no_phase_may_be_longer_than_the_call() {
        let said = AccountTimeouts {
            connect_seconds: Some(2),
            between_chunks_seconds: Some(9),
            total_seconds: Some(8),
            ..AccountTimeouts::default()
        };
        assert_eq!(said.longer_than_total(), Some("between_chunks_seconds"));
        assert_eq!(AccountTimeouts { total_seconds: Some(9), ..said }.longer_than_total(), None);
        assert_eq!(AccountTimeouts { total_seconds: None, ..said }.longer_than_total(), None);
    }
}
