//! What a figure should reach, and whether it does.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which way a figure should move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better, as for a rate.
    Higher,
    /// Less is better, as for a latency, a size or a count of failures.
    Lower,
}

/// What a figure should reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    /// The value should be this or more.
    AtLeast(f64),
    /// The value should be this or less.
    AtMost(f64),
    /// Nothing is asked of this figure; it is there to be read.
    None,
}

impl Aim {
    /// The bound, where there is one.
    #[must_use]
    pub fn bound(self) -> Option<f64> {
        match self {
            Self::AtLeast(bound) | Self::AtMost(bound) => Some(bound),
            Self::None => None,
        }
    }

    /// Which way the aim points; without one, rates (`…/s`) should rise and everything else should fall.
    #[must_use]
    pub fn better(self, unit: &str) -> Better {
        match self {
            Self::AtLeast(_) => Better::Higher,
            Self::AtMost(_) => Better::Lower,
            Self::None if unit.ends_with("/s") => Better::Higher,
            Self::None => Better::Lower,
        }
    }

    /// Whether the value reaches the aim. A value that is not a number misses every aim.
    #[must_use]
    pub fn judge(self, value: f64) -> Verdict {
        match self {
            Self::AtLeast(bound) => Verdict::from_comparison(value >= bound),
            Self::AtMost(bound) => Verdict::from_comparison(value <= bound),
            Self::None => Verdict::NotAsked,
        }
    }
}

/// Whether a figure reached its aim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It did.
    Met,
    /// It did not.
    Missed,
    /// There was no aim.
    NotAsked,
}

impl Verdict {
    fn from_comparison(holds: bool) -> Self {
        if holds { Self::Met } else { Self::Missed }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::NotAsked => "-",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_itself_is_good_enough() {
        let table = [
            (Aim::AtLeast(0.6), 0.6, Verdict::Met),
            (Aim::AtLeast(0.6), 0.599, Verdict::Missed),
            (Aim::AtMost(0.0), 0.0, Verdict::Met),
            (Aim::AtMost(0.0), 1.0, Verdict::Missed),
            (Aim::AtLeast(1.0), f64::NAN, Verdict::Missed),
            (Aim::AtMost(1.0), f64::NAN, Verdict::Missed),
            (Aim::None, f64::NAN, Verdict::NotAsked),
        ];
        for (aim, value, verdict) in table {
            assert_eq!(aim.judge(value), verdict, "{aim:?} of {value}");
        }
    }

    #[test]
    fn direction_follows_the_aim_and_then_the_unit() {
        assert_eq!(Aim::AtLeast(1.0).better("ms"), Better::Higher);
        assert_eq!(Aim::AtMost(1.0).better("runs/s"), Better::Lower);
        assert_eq!(Aim::None.better("runs/s"), Better::Higher);
        assert_eq!(Aim::None.better("ms"), Better::Lower);
    }
}
