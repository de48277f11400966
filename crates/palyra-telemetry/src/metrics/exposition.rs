//! The numbers as text, in the two formats that scrapers read. They differ little: OpenMetrics names a counter's family without `_total` and ends with `# EOF`.

use std::fmt::Write as _;

use super::cells::HistogramValue;
use super::family::Value;
use super::registry::Metrics;
use super::snapshot::{FamilySnapshot, Kind};

/// A text format for numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Exposition {
    /// The format that a client asks for in its `Accept` header; Prometheus' own unless OpenMetrics 1.0 is named and not refused.
    #[must_use]
    pub fn for_accept(accept: Option<&str>) -> Self {
        let named = accept.into_iter().flat_map(|accept| accept.split(',')).any(|choice| {
            let mut parts = choice.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let (mut version_fits, mut refused) = (true, false);
            for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "version" => version_fits = matches!(value, "1.0.0" | "1.0"),
                    "q" => refused = value.parse::<f32>().is_ok_and(|weight| weight <= 0.0),
                    _ => {}
                }
            }
            media_type.eq_ignore_ascii_case("application/openmetrics-text") && version_fits && !refused
        });
        if named { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The value of the `Content-Type` header.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Metrics {
    /// All numbers as text.
    #[must_use]
    pub fn render(&self, format: Exposition) -> String {
        let mut text = String::with_capacity(16 * 1024);
        for family in self.snapshot() {
            write_family(&mut text, &family, format);
        }
        if format == Exposition::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

fn write_family(text: &mut String, family: &FamilySnapshot, format: Exposition) {
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
    let named = if format == Exposition::OpenMetrics { "" } else { suffix };
    let name = family.name;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name}{named} {}", escape_help(family.help));
    let _ = writeln!(text, "# TYPE {name}{named} {kind}");
    for (labels, value) in &family.samples {
        match value {
            Value::Counter(count) => write_sample(text, (name, suffix), labels, None, &count.to_string()),
            Value::Gauge(value) => write_sample(text, (name, ""), labels, None, &value.to_string()),
            Value::Histogram(histogram) => write_histogram(text, name, labels, histogram),
        }
    }
}

fn write_histogram(text: &mut String, name: &str, labels: &[(&str, &str)], histogram: &HistogramValue) {
    for (place, count) in histogram.cumulative.iter().enumerate() {
        let bound = histogram.bounds.get(place).map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound));
        write_sample(text, (name, "_bucket"), labels, Some(&bound), &count.to_string());
    }
    write_sample(text, (name, "_sum"), labels, None, &seconds(histogram.sum_micros));
    write_sample(text, (name, "_count"), labels, None, &histogram.count().to_string());
}

fn write_sample(
    text: &mut String,
    (name, suffix): (&str, &str),
    labels: &[(&str, &str)],
    bound: Option<&str>,
    value: &str,
) {
    text.push_str(name);
    text.push_str(suffix);
    let bound = bound.map(|bound| ("le", bound));
    let mut separator = '{';
    for (name, value) in labels.iter().copied().chain(bound) {
        let _ = write!(text, "{separator}{name}=\"{}\"", escape_value(value));
        separator = ',';
    }
    if separator == ',' {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

/// Microseconds as seconds, exactly and always with a decimal point, as OpenMetrics wants its bounds.
fn seconds(micros: u64) -> String {
    let fraction = format!("{:06}", micros % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    format!("{}.{}", micros / 1_000_000, if fraction.is_empty() { "0" } else { fraction })
}

fn escape_help(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn escape_value(text: &str) -> String {
    escape_help(text).replace('"', "\\\"")
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
