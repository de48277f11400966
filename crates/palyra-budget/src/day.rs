//! Days and months of the UTC calendar, by which limits begin anew.
//!
//! Both are kept as a number of days since 1970-01-01. The calendar itself is that of [`Timestamp`].

use std::fmt;
use std::str::FromStr;

use palyra_common::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::BudgetError;

const MILLISECONDS: i64 = 86_400_000;

/// A UTC day. Written as `2026-11-15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day that holds this instant.
    #[must_use]
    pub const fn of(at: Timestamp) -> Self {
        Self(at.0.div_euclid(MILLISECONDS))
    }

    /// Its first instant.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(MILLISECONDS))
    }

    /// The instant at which the next day begins.
    #[must_use]
    pub const fn end(self) -> Timestamp {
        Self(self.0.saturating_add(1)).start()
    }

    /// The month it lies in.
    #[must_use]
    pub fn month(self) -> Month {
        Month(self.first_of_month())
    }

    /// `2026-11-15`.
    fn text(self) -> String {
        let mut text = self.start().to_rfc3339();
        text.truncate(text.find('T').unwrap_or(text.len()));
        text
    }

    fn first_of_month(self) -> Self {
        let text = self.text();
        let day: i64 = text.rsplit('-').next().and_then(|day| day.parse().ok()).unwrap_or(1);
        Self(self.0.saturating_sub(day - 1))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl FromStr for Day {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let wrong = || BudgetError::InvalidDate { value: text.to_owned() };
        let mut fields = text.split('-').map(|field| {
            let digits = !field.is_empty() && field.len() <= 4 && field.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| field.parse::<i64>().ok()).flatten()
        });
        let (Some(Some(year)), Some(Some(month)), Some(Some(day)), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(wrong());
        };
        let found = Self(days_from_civil(year, month, day));
        // A day that the calendar does not have (`2026-02-30`) comes out as another one.
        if found.text() == text { Ok(found) } else { Err(wrong()) }
    }
}

/// Number of a Gregorian date, by counting 400-year eras that start on 1 March.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9).rem_euclid(12);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// A UTC month. Written as `2026-11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(Day);

impl Month {
    /// The month that holds this instant.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        Day::of(at).month()
    }

    /// Its first instant.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        self.0.start()
    }

    /// The instant at which the next month begins.
    #[must_use]
    pub fn end(self) -> Timestamp {
        // Counted from the first, day 32 is one of the first four days of the next month.
        Day(self.0.0.saturating_add(31)).first_of_month().start()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.text();
        f.pad(text.rsplit_once('-').map_or(text.as_str(), |(month, _)| month))
    }
}

impl FromStr for Month {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let first: Day =
            format!("{text}-01").parse().map_err(|_| BudgetError::InvalidDate { value: text.to_owned() })?;
        Ok(Self(first))
    }
}

macro_rules! as_text {
    ($($name:ident($pattern:literal);)+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($name))
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    )+};
}

as_text! {
    Day("^[0-9]{4}-[0-9]{2}-[0-9]{2}$");
    Month("^[0-9]{4}-[0-9]{2}$");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse::<Day>().unwrap().start()
    }

    #[test]
    fn days_begin_at_midnight_utc() {
        let midnight = at("2026-11-15");
        assert_eq!(midnight, Timestamp(1_794_700_800_000));
        assert_eq!(Day::of(Timestamp(midnight.0 - 1)).to_string(), "2026-11-14");
        assert_eq!(Day::of(midnight).to_string(), "2026-11-15");
        assert_eq!(Day::of(midnight).end(), at("2026-11-16"));
        assert_eq!(Day::of(Timestamp(-1)).to_string(), "1969-12-31");
    }

    #[test]
    fn months_end_where_the_next_begins() {
        for (day, month, next) in [
            ("2026-01-31", "2026-01", "2026-02-01"),
            ("2026-02-28", "2026-02", "2026-03-01"),
            ("2024-02-29", "2024-02", "2024-03-01"),
            ("2026-12-31", "2026-12", "2027-01-01"),
            ("2026-04-01", "2026-04", "2026-05-01"),
        ] {
            let found = Month::of(at(day));
            assert_eq!(found.to_string(), month);
            assert_eq!(found.end(), at(next), "{day}");
            assert_eq!(found.start(), at(&format!("{month}-01")));
        }
    }

    #[test]
    fn only_days_of_the_calendar_are_read() {
        for text in [
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-1-1",
            "2026-11",
            "",
            "-1-01-01",
            "2026-11-15-1",
            "20261-01-01",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        assert!("2026-13".parse::<Month>().is_err());
        assert_eq!(serde_json::to_string(&"2026-11".parse::<Month>().unwrap()).unwrap(), "\"2026-11\"");
        assert!(serde_json::from_str::<Day>("\"2026-02-30\"").is_err());
    }

    proptest! {
        #[test]
        fn every_instant_lies_in_its_day_and_its_month(ms in -1_000_000_000_000_000_i64..1_000_000_000_000_000) {
            let at = Timestamp(ms);
            let (day, month) = (Day::of(at), Month::of(at));
            prop_assert!(day.start() <= at && at < day.end());
            prop_assert!(month.start() <= at && at < month.end());
            prop_assert_eq!(Month::of(month.end()).start(), month.end());
        }

        #[test]
        fn days_survive_text(days in 0_i64..2_900_000) {
            let day = Day(days);
            prop_assert_eq!(day.to_string().parse::<Day>().unwrap(), day);
        }

        #[test]
        fn extreme_instants_do_no_harm(ms: i64) {
            let _ = (Day::of(Timestamp(ms)).to_string(), Month::of(Timestamp(ms)).end());
        }
    }
}
