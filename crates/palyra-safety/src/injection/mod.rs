//! Signals of prompt injection: a score and reasons, for people and for policy.
//!
//! These are heuristics. They tell a person why a text deserves a second look and let policy ask for one; what keeps a hostile
//! text from acting are labels, provenance and policy, which do not depend on anything here.

mod hidden;
mod phrases;

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde::Serialize;

use crate::error::SafetyError;
use crate::findings::{Confidence, Finding, Preview, Span};
use crate::normalise::{Layer, View, views};
use hidden::{Signal, carrying_images, invisible_runs};
use phrases::PHRASES;

/// Scores at which the signals together count as medium and as high.
const MEDIUM_SCORE: u8 = 30;
const HIGH_SCORE: u8 = 60;

/// Signals reported per text; a text with more needs no further proof.
const MAX_SIGNALS: usize = 64;

/// Added when a signal was found only after unwrapping: nobody encodes an instruction for a person.
const WRAPPED_BONUS: u8 = 20;

/// `None` only if the built-in phrases did not compile, which a test rules out.
static AUTOMATON: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(PHRASES.iter().map(|phrase| phrase.text)).ok());

/// What the signals in a text add up to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InjectionAssessment {
    /// From 0, nothing noticed, to 100.
    pub score: u8,
    /// Each signal with its place; previews name the signal, never the text.
    pub signals: Vec<Finding>,
}

impl InjectionAssessment {
    /// How sure the signals together make us; `None` if there are none.
    #[must_use]
    pub const fn confidence(&self) -> Option<Confidence> {
        match self.score {
            0 => None,
            HIGH_SCORE.. => Some(Confidence::High),
            MEDIUM_SCORE.. => Some(Confidence::Medium),
            _ => Some(Confidence::Low),
        }
    }
}

/// Whether signals can be looked for at all.
pub(crate) fn ready() -> Result<(), SafetyError> {
    match &*AUTOMATON {
        Some(_) => Ok(()),
        None => Err(SafetyError::Automaton { reason: "the phrases of injection did not compile".to_owned() }),
    }
}

/// Looks for signals of injection in a text and in every view of it with layers taken off.
#[must_use]
pub fn assess(text: &[u8]) -> InjectionAssessment {
    let mut found = Collector { score: 0, seen: Vec::new(), signals: Vec::new() };
    for (at, part) in valid_parts(text) {
        invisible_runs(part, &mut |signal| {
            let span = signal.span.shifted(at);
            found.push(Signal { span, ..signal }, span, &[]);
        });
    }
    for view in views(text).0 {
        let whole = |span: Span| view.to_original(span);
        carrying_images(&view.bytes, &mut |signal| {
            let span = whole(signal.span);
            found.push(signal, span, &view.layers);
        });
        search_phrases(&view, &mut found);
    }
    found.signals.sort_by_key(|finding| finding.span);
    InjectionAssessment { score: found.score, signals: found.signals }
}

fn valid_parts(text: &[u8]) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.utf8_chunks().map(move |chunk| {
        let start = at;
        at += chunk.valid().len() + chunk.invalid().len();
        (start, chunk.valid())
    })
}

fn search_phrases(view: &View<'_>, found: &mut Collector) {
    let Some(automaton) = &*AUTOMATON else { return };
    let (plain, places) = plain(&view.bytes);
    for hit in automaton.find_overlapping_iter(&plain) {
        let Some(phrase) = PHRASES.get(hit.pattern().as_usize()) else { continue };
        let start = places.original(hit.start());
        let end = places.original(hit.end().saturating_sub(1)) + 1;
        let span = view.to_original(Span::new(start, end));
        let signal = Signal { kind: phrase.kind, name: phrase.text, weight: phrase.weight, span };
        found.push(signal, span, &view.layers);
    }
}

/// Lower case, every run of white space one space, emphasis marks gone; with the way back.
fn plain(text: &[u8]) -> (Vec<u8>, Places) {
    let mut out = Vec::with_capacity(text.len());
    let mut places = Places { shifts: vec![(0, 0)] };
    let mut dropped = 0;
    for (at, byte) in text.iter().enumerate() {
        let space = byte.is_ascii_whitespace();
        let twice = space && out.last() == Some(&b' ');
        if twice || matches!(byte, b'*' | b'`') {
            dropped += 1;
            continue;
        }
        if at - out.len() == dropped && places.shifts.last().is_some_and(|(_, shift)| *shift != dropped) {
            places.shifts.push((out.len(), dropped));
        }
        out.push(if space { b' ' } else { byte.to_ascii_lowercase() });
    }
    (out, places)
}

/// Where bytes of the plain text stood: from each position on, how many bytes were dropped before it.
struct Places {
    shifts: Vec<(usize, usize)>,
}

impl Places {
    fn original(&self, at: usize) -> usize {
        let index = self.shifts.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        at + self.shifts.get(index).map_or(0, |(_, shift)| *shift)
    }
}

struct Collector {
    score: u8,
    /// What already counted towards the score: saying the same thing ten times is one signal.
    seen: Vec<&'static str>,
    signals: Vec<Finding>,
}

impl Collector {
    fn push(&mut self, signal: Signal, span: Span, layers: &[Layer]) {
        let known = self.signals.iter().any(|other| other.detector == signal.name && other.span.overlaps(span));
        if known || self.signals.len() >= MAX_SIGNALS {
            return;
        }
        let mut weight = signal.weight;
        if !layers.is_empty() {
            weight = weight.saturating_add(WRAPPED_BONUS);
        }
        if !self.seen.contains(&signal.name) {
            self.seen.push(signal.name);
            self.score = self.score.saturating_add(weight).min(100);
        }
        self.signals.push(Finding {
            kind: signal.kind,
            detector: signal.name,
            span,
            confidence: confidence_of(weight),
            layers: layers.to_vec(),
            vault_name: None,
            preview: Preview::masked(signal.name, span.len()),
        });
    }
}

const fn confidence_of(weight: u8) -> Confidence {
    if weight >= HIGH_SCORE {
        Confidence::High
    } else if weight >= MEDIUM_SCORE {
        Confidence::Medium
    } else {
        Confidence::Low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_compile_and_are_in_plain_form() {
        assert!(AUTOMATON.is_some());
        for phrase in PHRASES {
            assert_eq!(plain(phrase.text.as_bytes()).0, phrase.text.as_bytes(), "{}", phrase.text);
        }
    }
}
