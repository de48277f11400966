//! The scanner: every view of a text searched for secrets, and the results put in order.
//!
//! It owns the recursion over layers and the choice between findings that overlap. Where a stream may be cut is answered here too
//! ([`Scanner::scan_open`]), since only the search knows what is still undecided at the end of a text.

use std::fmt;

use crate::error::SafetyError;
use crate::findings::{Finding, FindingKind, Preview, Scan, Span};
use crate::injection;
use crate::normalise::{Budget, Layer, MAX_LAYERS, OpenFrom, fold_bytes, unwrap_once};
use crate::secrets::{Found, Matcher, VaultEntry};

/// How many earlier findings an overlap is looked for in; more at one place means the text is nothing but secrets.
const OVERLAP_REACH: usize = 16;

/// Looks for secrets. Building one is work, using it is cheap; share it.
pub struct Scanner {
    matcher: Matcher,
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner").finish_non_exhaustive()
    }
}

impl Scanner {
    /// A scanner for token shapes and for the exact values of these vault entries.
    pub fn new(vault: &[VaultEntry]) -> Result<Self, SafetyError> {
        // Whoever has a scanner relies on the signals too, so there is none without them.
        injection::ready()?;
        Ok(Self { matcher: Matcher::new(vault)? })
    }

    /// Looks for secrets in a text, also encoded and disguised ones. Any bytes will do.
    #[must_use]
    pub fn scan(&self, text: &[u8]) -> Scan {
        let mut walk = Walk::new(text.len());
        self.walk(text, &mut walk, &|span| span, &mut OpenFrom::NOTHING.clone());
        walk.finish()
    }

    /// The same for a text that goes on: also says up to where no further text can change the answer.
    pub(crate) fn scan_open(&self, text: &[u8]) -> (Scan, usize) {
        let complete = text.len() - unfinished_character(text);
        let mut open = OpenFrom::NOTHING;
        open.note(complete);
        let mut walk = Walk::new(text.len());
        self.walk(text.get(..complete).unwrap_or(text), &mut walk, &|span| span, &mut open);
        (walk.finish(), open.get())
    }

    fn walk(&self, text: &[u8], walk: &mut Walk, to_original: &dyn Fn(Span) -> Span, open: &mut OpenFrom) {
        self.matcher.search(text, open, &mut |found| walk.push(found, to_original));
        open.note(self.matcher.unfinished_from(text));
        open.note(last_word(text));

        let mut views = Vec::new();
        if !text.is_ascii() {
            let (folded, map) = fold_bytes(text);
            if folded.as_bytes() != text {
                let mut folded_open = OpenFrom::NOTHING;
                if walk.enter(Layer::Unicode, folded.len()).is_some() {
                    let inner = |span| to_original(map.to_original(span));
                    self.walk(folded.as_bytes(), walk, &inner, &mut folded_open);
                    walk.leave();
                }
                if folded_open.get() < folded.len() {
                    open.note(map.to_original(Span::new(folded_open.get(), folded.len())).start);
                }
            }
        }
        unwrap_once(text, open, &mut |layer, decoded, map| views.push((layer, decoded, map)));
        for (layer, decoded, map) in views {
            if walk.enter(layer, decoded.len()).is_none() {
                break;
            }
            let inner = |span| to_original(map.to_original(span));
            // A decoded run is closed: what follows it in the text does not belong to it.
            self.walk(&decoded, walk, &inner, &mut OpenFrom::NOTHING.clone());
            walk.leave();
        }
    }
}

/// State of one scan.
struct Walk {
    budget: Budget,
    layers: Vec<Layer>,
    findings: Vec<Finding>,
}

impl Walk {
    fn new(len: usize) -> Self {
        Self { budget: Budget::for_input(len), layers: Vec::new(), findings: Vec::new() }
    }

    /// Goes one layer deeper, unless the limits are reached.
    fn enter(&mut self, layer: Layer, len: usize) -> Option<()> {
        if self.layers.len() >= MAX_LAYERS {
            self.budget.exceeded();
            return None;
        }
        self.budget.take(len)?;
        self.layers.push(layer);
        Some(())
    }

    fn leave(&mut self) {
        self.layers.pop();
    }

    fn push(&mut self, found: Found, to_original: &dyn Fn(Span) -> Span) {
        let mut layers = self.layers.clone();
        layers.extend(found.layer);
        let prefix = found.vault_name.as_deref().unwrap_or(found.prefix);
        self.findings.push(Finding {
            kind: found.kind,
            detector: found.detector,
            span: to_original(Span::new(found.start, found.end)),
            confidence: found.confidence,
            layers,
            preview: Preview::masked(prefix, found.end - found.start),
            vault_name: found.vault_name,
        });
    }

    fn finish(self) -> Scan {
        Scan { findings: resolve(self.findings), coverage: self.budget.coverage() }
    }
}

/// Orders findings and drops each that says less about the same place than another.
fn resolve(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| {
        (a.span.start, std::cmp::Reverse(a.span.end), std::cmp::Reverse(weight(a)), a.detector).cmp(&(
            b.span.start,
            std::cmp::Reverse(b.span.end),
            std::cmp::Reverse(weight(b)),
            b.detector,
        ))
    });
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let recent = kept.len().saturating_sub(OVERLAP_REACH);
        let inside =
            |outer: &Finding, inner: &Finding| outer.span.start <= inner.span.start && inner.span.end <= outer.span.end;
        let covered = kept.iter().skip(recent).any(|other| {
            inside(other, &finding) && (other.confidence, rank(other)) >= (finding.confidence, rank(&finding))
        });
        // Of several findings at exactly the same place the best explanation comes first and covers the others.
        if !covered {
            kept.push(finding);
        }
    }
    kept
}

/// What makes one explanation of the same place better than another.
fn weight(finding: &Finding) -> (crate::Confidence, u8, std::cmp::Reverse<usize>) {
    (finding.confidence, rank(finding), std::cmp::Reverse(finding.layers.len()))
}

/// How specific a kind is.
const fn rank(finding: &Finding) -> u8 {
    match finding.kind {
        FindingKind::AssignedSecret | FindingKind::AuthorizationHeader => 0,
        FindingKind::VaultValue => 2,
        _ => 1,
    }
}

/// Where the last word of the text starts; the text's length if it ends in white space or beyond ASCII.
fn last_word(text: &[u8]) -> usize {
    text.iter().rposition(|byte| !byte.is_ascii_graphic()).map_or(0, |index| index + 1)
}

/// How many bytes at the end are the beginning of a UTF-8 character.
fn unfinished_character(text: &[u8]) -> usize {
    let tail = text.iter().rev().take(3).position(|byte| *byte >= 0xC0);
    let Some(back) = tail else { return 0 };
    let lead = text.iter().rev().nth(back).copied().unwrap_or(0);
    let wanted = match lead {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    let continued = text.iter().rev().take(back).all(|byte| (0x80..0xC0).contains(byte));
    if continued && back + 1 < wanted { back + 1 } else { 0 }
}
