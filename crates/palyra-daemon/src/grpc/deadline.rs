//! Deadlines of callers: `grpc-timeout`, read once per call.
//!
//! The library would end a call with `CANCELLED` and leaves streams alone after their first answer, so the deadline is kept
//! here: a unary call is dropped with its work when the time is up, a stream ends, and both say so with an envelope.

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

/// When the caller stops waiting; `None` if it did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline(Option<Instant>);

/// A `grpc-timeout` that is not one to eight digits and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InvalidTimeout;

impl Deadline {
    /// Reads the header of a call that came in now.
    pub(super) fn of_call(headers: &HeaderMap) -> Result<Self, InvalidTimeout> {
        let mut values = headers.get_all("grpc-timeout").iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        if values.next().is_some() {
            return Err(InvalidTimeout);
        }
        let timeout = value.to_str().ok().and_then(parse).ok_or(InvalidTimeout)?;
        // Too far away to be told from never.
        Ok(Self(Instant::now().checked_add(timeout)))
    }

    /// Whether the time is up already, so that nothing should be begun.
    pub(super) fn is_over(self) -> bool {
        self.0.is_some_and(|at| at <= Instant::now())
    }

    /// Waits until the time is up, for ever if there is no deadline.
    pub(super) async fn passed(self) {
        match self.0 {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// One to eight digits and a unit, as the protocol has it.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_digits_and_a_unit() {
        let table = [
            ("1S", Some(Duration::from_secs(1))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("250m", Some(Duration::from_millis(250))),
            ("0u", Some(Duration::ZERO)),
            ("7n", Some(Duration::from_nanos(7))),
            ("", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("+1S", None),
            ("123456789S", None),
            ("1é", None),
            ("1 S", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_or_repeated_header_is_an_error_and_none_is_no_deadline() {
        let mut headers = HeaderMap::new();
        assert_eq!(Deadline::of_call(&headers), Ok(Deadline(None)));
        headers.append("grpc-timeout", "5x".parse().unwrap());
        assert_eq!(Deadline::of_call(&headers), Err(InvalidTimeout));
        headers.insert("grpc-timeout", "5S".parse().unwrap());
        assert!(matches!(Deadline::of_call(&headers), Ok(Deadline(Some(_)))));
        headers.append("grpc-timeout", "5S".parse().unwrap());
        assert_eq!(Deadline::of_call(&headers), Err(InvalidTimeout));
    }
}
