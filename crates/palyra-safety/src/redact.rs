//! Cutting findings out of a text.

use crate::findings::{Finding, FindingClass};

/// The text without the secrets: each finding, or group of overlapping ones, becomes `[redacted:kind]`.
///
/// Injection signals are not cut out; they are there to be seen. Findings must be in ascending order, as scans give them.
#[must_use]
pub fn redact(text: &[u8], findings: &[Finding]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    let mut secrets = findings.iter().filter(|finding| finding.kind.class() != FindingClass::Injection).peekable();
    while let Some(first) = secrets.next() {
        let (mut end, mut best) = (first.span.end, first);
        while let Some(next) = secrets.next_if(|next| next.span.start < end) {
            end = end.max(next.span.end);
            if next.confidence > best.confidence {
                best = next;
            }
        }
        out.extend_from_slice(text.get(at..first.span.start.max(at)).unwrap_or_default());
        out.extend_from_slice(format!("[redacted:{}]", best.kind).as_bytes());
        at = end.max(at);
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    out
}

/// The same for text that is a string.
#[must_use]
pub fn redact_str(text: &str, findings: &[Finding]) -> String {
    String::from_utf8_lossy(&redact(text.as_bytes(), findings)).into_owned()
}
