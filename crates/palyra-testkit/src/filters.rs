//! Making output comparable: ids, times, durations, digests and paths are replaced by their kind.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// Replacements that are applied in order, literal ones first.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    literals: Vec<(String, String)>,
}

/// Patterns of everything that differs from run to run. Digests go before ids, since an id could be a part of one.
static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"\b[0-9a-f]{64}\b", "[DIGEST]"),
        (r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", "[ID]"),
        (r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", "[TIME]"),
        (r"\b\d{4}-\d{2}-\d{2} \d{2}:\d{2}(:\d{2})?", "[TIME]"),
        (r"\b\d+(\.\d+)? ?(ms|µs|s)\b", "[DURATION]"),
        (r#""(at|pid|[a-z]+_at|[a-z]+_ms)":\s*\d+"#, "\"$1\": [NUMBER]"),
        (r"\bpid \d+", "pid [PID]"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:[PORT]"),
    ]
    .into_iter()
    .filter_map(|(pattern, name)| Some((Regex::new(pattern).ok()?, name)))
    .collect()
});

impl Filters {
    /// The usual replacements.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows this path as `[name]`. Longer paths are replaced first, whatever the order they were named in.
    #[must_use]
    pub fn path(mut self, path: &Path, name: &str) -> Self {
        self.literals.push((path.display().to_string(), format!("[{name}]")));
        self.literals.sort_by_key(|(literal, _)| std::cmp::Reverse(literal.len()));
        self
    }

    /// The text with everything replaced.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (literal, shown) in &self.literals {
            text = text.replace(literal, shown);
        }
        for (pattern, shown) in PATTERNS.iter() {
            text = pattern.replace_all(&text, *shown).into_owned();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_replaces_its_kind() {
        assert_eq!(PATTERNS.len(), 8);
        let filters = Filters::new().path(Path::new("/tmp/x"), "ROOT").path(Path::new("/tmp/x/state"), "STATE");
        let table = [
            ("run 01JCQ8Z0V6M3ZP5RC7R9S0T1XY ended", "run [ID] ended"),
            ("at 2026-11-15T08:09:10.123Z", "at [TIME]"),
            ("took 12 ms, then 1.5 s", "took [DURATION], then [DURATION]"),
            ("in /tmp/x/state and /tmp/x/other", "in [STATE] and [ROOT]/other"),
            (
                r#"{"pid":12,"ended_at": 99,"total_ms":3}"#,
                r#"{"pid": [NUMBER],"ended_at": [NUMBER],"total_ms": [NUMBER]}"#,
            ),
            ("http://127.0.0.1:7142/v1 by pid 77", "http://127.0.0.1:[PORT]/v1 by pid [PID]"),
            ("three files, exit 2", "three files, exit 2"),
        ];
        for (text, expected) in table {
            assert_eq!(filters.apply(text), expected);
        }
        let digest = "ab".repeat(32);
        assert_eq!(filters.apply(&format!("sha {digest}.")), "sha [DIGEST].");
    }
}
