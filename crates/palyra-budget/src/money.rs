//! Amounts of money: whole millionths of a US dollar.
//!
//! A price of a fraction of a micro-dollar is rounded up by whoever computes it; no fraction is ever kept, so sums are exact in
//! any order. Adding stops at the largest amount rather than wrapping around: too large an amount is refused by every limit.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BudgetError;

/// Micro-dollars in a dollar.
const PER_DOLLAR: u64 = 1_000_000;

/// An amount in millionths of a US dollar. Stored and sent as that whole number; shown to people as `$0.001234`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// The largest amount there is.
    pub const MAX: Self = Self(u64::MAX);

    /// So many whole dollars, or the largest amount if that is too much.
    #[must_use]
    pub const fn dollars(dollars: u64) -> Self {
        Self(dollars.saturating_mul(PER_DOLLAR))
    }

    /// The amount in millionths of a dollar.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Whether it is nothing.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Both together, unless that is more than an amount can be.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// What is left without the other, unless the other is more.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(rest) => Some(Self(rest)),
            None => None,
        }
    }

    /// Both together, or the largest amount.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left without the other, or nothing.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Reads an amount that a configuration file gives as a number of dollars.
    pub fn from_number(dollars: f64) -> Result<Self, BudgetError> {
        // The shortest decimal that means this number is what the operator wrote; arithmetic on it would not be.
        dollars.to_string().parse()
    }

    /// The amount in dollars without the sign, as `0.001234`, for tables that programs read.
    #[must_use]
    pub fn to_decimal(self) -> String {
        let fraction = format!("{:06}", self.0 % PER_DOLLAR);
        let kept = fraction.trim_end_matches('0');
        // Cents are always shown: `5.00` is an amount, `5` might be a count.
        format!("{}.{kept:0<2}", self.0 / PER_DOLLAR)
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}", self.to_decimal()))
    }
}

impl std::iter::Sum for MicroUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl FromStr for MicroUsd {
    type Err = BudgetError;

    /// Reads `$5`, `5`, `0.50 USD` and the like; at most six digits behind the point.
    fn from_str(text: &str) -> Result<Self, BudgetError> {
        palyra_common::micro_dollars(text)
            .map(Self)
            .map_err(|reason| BudgetError::InvalidAmount { value: text.to_owned(), reason })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, micros) in [
            ("$5", 5_000_000),
            ("5", 5_000_000),
            ("0.50 USD", 500_000),
            (" $ 1.25 ", 1_250_000),
            (".5", 500_000),
            ("3usd", 3_000_000),
            ("$0.000001", 1),
            ("0.0000010000", 1),
            ("0", 0),
            ("18446744073709.551615", u64::MAX),
        ] {
            assert_eq!(text.parse::<MicroUsd>().unwrap(), MicroUsd(micros), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            " ",
            "$",
            "USD",
            ".",
            "5.",
            "-1",
            "+1",
            "1e3",
            "1,000",
            "1_000",
            "1.2.3",
            "0.0000001",
            "five",
            "€5",
            "٣",
            "$$5",
            "18446744073709.551616",
            "99999999999999999999",
            "NaN",
            "inf",
        ] {
            assert!(text.parse::<MicroUsd>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_mean_what_was_written() {
        assert_eq!(MicroUsd::from_number(0.1).unwrap(), MicroUsd(100_000));
        assert_eq!(MicroUsd::from_number(5.0).unwrap(), MicroUsd::dollars(5));
        assert_eq!(MicroUsd::from_number(0.000_001).unwrap(), MicroUsd(1));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e-9, 1e300] {
            assert!(MicroUsd::from_number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_shown_with_cents_and_no_useless_zeros() {
        for (micros, shown) in
            [(0, "$0.00"), (1_234, "$0.001234"), (5_000_000, "$5.00"), (1_500_000, "$1.50"), (1_000_010, "$1.00001")]
        {
            assert_eq!(MicroUsd(micros).to_string(), shown);
        }
        assert_eq!(format!("{:>8}", MicroUsd::dollars(1)), "   $1.00");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(micros: u64) {
            prop_assert_eq!(MicroUsd(micros).to_string().parse::<MicroUsd>().unwrap(), MicroUsd(micros));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,24}") {
            let _ = text.parse::<MicroUsd>();
        }

        #[test]
        fn sums_never_wrap(left: u64, right: u64) {
            let (left, right) = (MicroUsd(left), MicroUsd(right));
            prop_assert_eq!(left.checked_add(right).unwrap_or(MicroUsd::MAX), left.saturating_add(right));
            prop_assert_eq!(left.checked_sub(right).unwrap_or(MicroUsd::ZERO), left.saturating_sub(right));
        }
    }
}
