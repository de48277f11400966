//! Scanning text that arrives in chunks: nothing is released before it is certain what it is.
//!
//! After each chunk the scanner says up to where no further text can change its findings; up to there the text is redacted and
//! released, the rest is held. Prose is held for a word or two, an open key for as long as it is open. Some released bytes are kept
//! as left context.
//!
//! INVARIANT: the released bytes, concatenated, are what redacting the whole text gives, however it was cut. The exception is
//! material without any white space that is longer than [`MAX_HELD_BYTES`]: it is released in pieces that overlap by half of
//! that, so only a single secret longer than the overlap could be judged differently.

use std::sync::Arc;

use crate::findings::{Coverage, Finding, Span};
use crate::redact::redact;
use crate::scanner::Scanner;

/// How much text is held back at most; what is longer without a break is released in overlapping pieces.
pub const MAX_HELD_BYTES: usize = 256 * 1024;

/// Released bytes kept as left context; longer than any look to the left of an anchor.
const LEAD: usize = 64;

/// Bytes kept before a finding that is not released yet.
const EVIDENCE: usize = MAX_HELD_BYTES / 2;

/// Scans and redacts a stream.
#[derive(Debug)]
pub struct StreamScanner {
    scanner: Arc<Scanner>,
    /// Left context, then what is held.
    buffer: Vec<u8>,
    /// How much of the buffer was released.
    lead: usize,
    /// Where the buffer starts in the stream.
    offset: usize,
    /// Buffer length at which it pays to scan again; keeps the cost linear for tiny chunks.
    scan_at: usize,
    /// Findings that reach beyond what was released, in stream positions.
    carried: Vec<Finding>,
    coverage: Coverage,
}

/// What a stream gives out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Released {
    /// Redacted text.
    pub bytes: Vec<u8>,
    /// What was cut out, with positions in the original stream.
    pub findings: Vec<Finding>,
}

impl StreamScanner {
    /// A scanner at the start of a stream.
    #[must_use]
    pub const fn new(scanner: Arc<Scanner>) -> Self {
        Self {
            scanner,
            buffer: Vec::new(),
            lead: 0,
            offset: 0,
            scan_at: 0,
            carried: Vec::new(),
            coverage: Coverage::Complete,
        }
    }

    /// Takes a chunk and gives out what is certain.
    pub fn push(&mut self, chunk: &[u8]) -> Released {
        self.buffer.extend_from_slice(chunk);
        if self.buffer.len() < self.scan_at {
            return Released::default();
        }
        let (scan, mut cut) = self.scanner.scan_open(&self.buffer);
        self.coverage = self.coverage.max(scan.coverage);
        if self.buffer.len() - self.lead > MAX_HELD_BYTES {
            cut = cut.max(self.buffer.len() - MAX_HELD_BYTES / 2);
        }
        cut = cut.clamp(self.lead, self.buffer.len());
        let too_much = self.buffer.len() - self.lead > MAX_HELD_BYTES;
        let mut kept = cut;
        // A finding that is not released yet rests on what stands before it (the name of a value, the start of an encoded run), so that
        // stays in the buffer too: without it the next look would not find it again.
        for finding in scan.findings.iter().filter(|finding| finding.span.end > cut) {
            kept = kept.min(finding.span.start.saturating_sub(EVIDENCE));
        }
        // Left to right: whoever moves the cut behind one finding may put it inside a later one. What is cut off here is decided.
        for finding in &scan.findings {
            if finding.span.start < kept && kept < finding.span.end {
                kept = finding.span.end.min(cut);
            }
        }
        // A finding too long to hold is released in parts, each of them redacted.
        if kept > self.lead || !too_much {
            cut = kept.max(self.lead);
        }
        self.release(scan.findings, cut)
    }

    /// Ends the stream and gives out the rest.
    pub fn finish(mut self) -> (Released, Coverage) {
        let scan = self.scanner.scan(&self.buffer);
        let coverage = self.coverage.max(scan.coverage);
        let end = self.buffer.len();
        (self.release(scan.findings, end), coverage)
    }

    /// How many bytes are being held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.buffer.len() - self.lead
    }

    fn release(&mut self, findings: Vec<Finding>, cut: usize) -> Released {
        let mut inside: Vec<Finding> = std::mem::take(&mut self.carried);
        for mut finding in findings {
            if finding.span.start < cut && finding.span.end > self.lead {
                finding.span = finding.span.shifted(self.offset);
                let known = inside.iter().any(|carried| carried.span.overlaps(finding.span));
                if !known {
                    inside.push(finding);
                }
            }
        }
        let (from, to) = (self.offset + self.lead, self.offset + cut);
        let local: Vec<Finding> = inside
            .iter()
            .filter(|finding| finding.span.start < to)
            .map(|finding| {
                let start = finding.span.start.max(from) - from;
                Finding { span: Span::new(start, finding.span.end.min(to).saturating_sub(from)), ..finding.clone() }
            })
            .collect();
        let bytes = redact(self.buffer.get(self.lead..cut).unwrap_or_default(), &local);
        self.carried = inside.iter().filter(|finding| finding.span.end > to).cloned().collect();
        let findings = inside.into_iter().filter(|finding| finding.span.start >= from).collect();

        let mut keep_from = cut.saturating_sub(LEAD);
        // The context starts with a whole character, so that folding reads it as it was.
        while keep_from < cut && self.buffer.get(keep_from).is_some_and(|byte| (0x80..0xC0).contains(byte)) {
            keep_from += 1;
        }
        self.buffer.drain(..keep_from);
        self.offset += keep_from;
        self.lead = cut - keep_from;
        self.scan_at = self.buffer.len() + (self.held() / 4).max(1);
        Released { bytes, findings }
    }
}
