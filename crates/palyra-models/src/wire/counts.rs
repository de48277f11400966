//! Token counts as servers report them, read into bounded numbers.
//!
//! A count that is left out is zero: several APIs leave zeros out. A count that is there and is no plausible number (negative, fractional, a
//! text, beyond [`MAX_CALL_TOKENS`]) makes the whole report unusable, and whoever books the call takes it for unknown. Nothing downstream
//! ever adds up a number that a server invented.

use serde_json::Value;

use crate::event::Usage;

/// Most tokens of one kind that a call can have used. The largest context windows hold ten million.
const MAX_CALL_TOKENS: u64 = 100_000_000;

/// Reads the counts of one report and remembers whether all of them could be read.
#[derive(Debug)]
pub(crate) struct Counts<'a> {
    report: &'a Value,
    unreadable: bool,
}

impl<'a> Counts<'a> {
    pub(crate) const fn of(report: &'a Value) -> Self {
        Self { report, unreadable: false }
    }

    /// The count at the first of these JSON pointers that is there.
    pub(crate) fn at(&mut self, pointers: &[&str]) -> u64 {
        let mut present = pointers.iter().filter_map(|pointer| self.report.pointer(pointer));
        let Some(value) = present.find(|value| !value.is_null()) else { return 0 };
        match count(value) {
            Some(count) => count,
            None => {
                self.unreadable = true;
                0
            }
        }
    }

    /// The report, if every count in it could be read.
    pub(crate) fn finish(self, usage: Usage) -> Option<Usage> {
        (!self.unreadable).then_some(usage)
    }
}

/// One count: a whole number within bounds. Some servers write whole numbers with a decimal point.
pub(crate) fn count(value: &Value) -> Option<u64> {
    let whole = |number: f64| {
        #[expect(clippy::cast_precision_loss, reason = "the bound is far below 2⁵³")]
        let plausible = number.fract() == 0.0 && (0.0..=MAX_CALL_TOKENS as f64).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
        plausible.then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(whole)).filter(|count| *count <= MAX_CALL_TOKENS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::any_json::any_json;

    #[test]
    fn only_whole_numbers_within_bounds_are_counts() {
        for (value, expected) in [
            (json!(0), Some(0)),
            (json!(7), Some(7)),
            (json!(7.0), Some(7)),
            (json!(MAX_CALL_TOKENS), Some(MAX_CALL_TOKENS)),
            (json!(MAX_CALL_TOKENS + 1), None),
            (json!(1_000_000_000_000_000_000_u64), None),
            (json!(u64::MAX), None),
            (json!(1e300), None),
            (json!(-1), None),
            (json!(-0.5), None),
            (json!(1.5), None),
            (json!("7"), None),
            (json!([7]), None),
        ] {
            assert_eq!(count(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_report_with_an_unreadable_count_is_no_report() {
        let read = |report: Value| {
            let mut counts = Counts::of(&report);
            let usage = Usage::plain(counts.at(&["/in", "/input"]), counts.at(&["/out"]));
            counts.finish(usage)
        };
        assert_eq!(read(json!({ "input": 3 })), Some(Usage::plain(3, 0)), "what is left out is zero");
        assert_eq!(read(json!({ "in": null, "input": 3, "out": 1 })), Some(Usage::plain(3, 1)));
        assert_eq!(read(json!({ "in": 3, "out": -1 })), None);
    }

    proptest! {
        #[test]
        fn no_value_is_read_as_more_than_the_bound(value in any_json(&["a"], &["1"])) {
            prop_assert!(count(&value).is_none_or(|count| count <= MAX_CALL_TOKENS));
        }
    }
}
