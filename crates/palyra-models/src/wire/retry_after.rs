//! How long a server asks to wait.
//!
//! Seconds, whole or with a fraction and perhaps a unit; milliseconds in a header of their own; or a date. A date is compared with
//! the server's own `Date`, not with the clock here: two clocks that disagree by an hour would turn a second's wait into an hour.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

/// Longest wait that is believed. Beyond that the header is nonsense or a matter for people.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// What the headers ask for; none if they say nothing that can be understood.
pub(super) fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let asked = text("retry-after-ms").and_then(milliseconds).or_else(|| {
        let value = text("retry-after")?;
        seconds(value).or_else(|| until(value, text("date"), now))
    });
    asked.filter(|wait| *wait <= LONGEST)
}

fn milliseconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse::<f64>().ok()? / 1000.0).ok()
}

/// Seconds, whole or with a fraction; some servers write the unit.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().trim_end_matches('s').parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The time up to a date by the server's own clock. A date that has passed means now.
fn until(date: &str, server_now: Option<&str>, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(date).ok()?;
    let now = server_now.and_then(|text| httpdate::parse_http_date(text).ok()).unwrap_or(now);
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    type Headers = &'static [(&'static str, &'static str)];

    fn asked(headers: &[(&str, &str)]) -> Option<u64> {
        let map = headers
            .iter()
            .map(|(name, value)| (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap()));
        let now = httpdate::parse_http_date("Sun, 15 Nov 2026 12:00:00 GMT").unwrap();
        from_headers(&map.collect(), now).map(|wait| u64::try_from(wait.as_millis()).unwrap())
    }

    #[test]
    fn every_form_is_read_and_nonsense_is_ignored() {
        let table: &[(Headers, Option<u64>)] = &[
            (&[], None),
            (&[("retry-after", "2")], Some(2000)),
            (&[("retry-after", " 0.5 ")], Some(500)),
            (&[("retry-after", "7s")], Some(7000)),
            (&[("retry-after-ms", "250"), ("retry-after", "1")], Some(250)),
            (&[("retry-after-ms", "soon"), ("retry-after", "1")], Some(1000)),
            (&[("retry-after", "Sun, 15 Nov 2026 12:00:30 GMT")], Some(30_000)),
            (&[("retry-after", "Sun, 15 Nov 2026 11:00:00 GMT")], Some(0)),
            // The server's clock is years ahead or behind; only its own difference counts.
            (
                &[("date", "Tue, 01 Jan 2030 00:00:00 GMT"), ("retry-after", "Tue, 01 Jan 2030 00:00:05 GMT")],
                Some(5000),
            ),
            (
                &[("date", "Thu, 01 Jan 1970 00:00:00 GMT"), ("retry-after", "Thu, 01 Jan 1970 00:00:09 GMT")],
                Some(9000),
            ),
            (&[("retry-after", "Tue, 01 Jan 2030 00:00:05 GMT")], None),
        ];
        for (headers, expected) in table {
            assert_eq!(asked(headers), *expected, "{headers:?}");
        }
        for nonsense in ["", "soon", "-1", "NaN", "inf", "1e300", "99999999999", "Sun, 99 Nov 2026 12:00:30 GMT"] {
            assert_eq!(asked(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
    }
}
