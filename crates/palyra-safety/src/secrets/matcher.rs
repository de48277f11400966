//! The one pass over a text: where could an anchor or a vault spelling begin, and what is looked at there.
//!
//! A filter of all three-byte beginnings goes over the text without branching on it; only where it answers does an automaton
//! follow the patterns from that place. So every occurrence counts, also overlapping ones: otherwise `akiAIza…` would hide
//! the key behind half of another anchor. Both ignore case; whoever needs the exact spelling compares it at the few places
//! found.
//!
//! The automaton holds vault values in memory for as long as the scanner lives. It has no `Debug` and is never serialised.

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous;
use aho_corasick::{Anchored, MatchKind};

use super::site::Site;
use super::table::{Rule, rules};
use super::vault::{Case, VaultEntry, spellings};
use crate::error::SafetyError;
use crate::findings::{Confidence, FindingKind};
use crate::normalise::{Layer, OpenFrom};

/// Bytes of a pattern that the filter knows; no anchor and no spelling is shorter.
const GRAM: usize = 3;

/// Words of the filter: sixteen bits of hash, so that it fits the first-level cache.
const FILTER_WORDS: usize = 1024;

enum Meaning {
    Anchor(Rule),
    Vault { name: usize, layer: Option<Layer>, case: Case, bytes: Vec<u8> },
}

/// Finds secrets in one view.
pub(crate) struct Matcher {
    automaton: contiguous::NFA,
    filter: Box<[u64; FILTER_WORDS]>,
    meanings: Vec<Meaning>,
    names: Vec<String>,
    longest: usize,
}

/// Something found in a view, in that view's bytes.
pub(crate) struct Found {
    pub(crate) kind: FindingKind,
    pub(crate) detector: &'static str,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) confidence: Confidence,
    pub(crate) layer: Option<Layer>,
    pub(crate) vault_name: Option<String>,
    /// The public part of the finding.
    pub(crate) prefix: &'static str,
}

impl Matcher {
    pub(crate) fn new(vault: &[VaultEntry]) -> Result<Self, SafetyError> {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut meanings = Vec::new();
        for (anchor, rule) in rules() {
            patterns.push(anchor.as_bytes().to_vec());
            meanings.push(Meaning::Anchor(rule));
        }
        let mut names = Vec::new();
        for entry in vault {
            for spelling in spellings(entry)? {
                patterns.push(spelling.bytes.clone());
                meanings.push(Meaning::Vault {
                    name: names.len(),
                    layer: spelling.layer,
                    case: spelling.case,
                    bytes: spelling.bytes,
                });
            }
            names.push(entry.name.clone());
        }
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        let mut filter = Box::new([0; FILTER_WORDS]);
        for pattern in &patterns {
            let gram = pattern.iter().take(GRAM).fold(0, |gram, byte| push_byte(gram, *byte));
            let (word, bit) = slot(gram);
            if let Some(word) = filter.get_mut(word) {
                *word |= bit;
            }
        }
        let automaton = contiguous::Builder::new()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(&patterns)
            .map_err(|error| SafetyError::Automaton { reason: error.to_string() })?;
        Ok(Self { automaton, filter, meanings, names, longest })
    }

    /// Hands everything found in `text` to `each` and notes from where on more text could change the answer.
    pub(crate) fn search(&self, text: &[u8], open: &mut OpenFrom, each: &mut dyn FnMut(Found)) {
        let mut at = 0;
        // Eight bytes at once hold the grams of six places.
        while let Some(eight) = text.get(at..at + 8).and_then(|eight| <[u8; 8]>::try_from(eight).ok()) {
            let word = u64::from_be_bytes(eight) | (u64::MAX / 0xFF * 0x20);
            let hits = (0..6).fold(0_u32, |hits, place| {
                hits | u32::from(self.may_start((word >> (40 - 8 * place)) as u32)) << place
            });
            if hits != 0 {
                for place in (0..6).filter(|place| hits >> place & 1 != 0) {
                    self.follow(text, at + place, open, each);
                }
            }
            at += 6;
        }
        for start in at..text.len() {
            if let Some(gram) = text.get(start..start + GRAM)
                && self.may_start(gram.iter().fold(0, |gram, byte| push_byte(gram, *byte)))
            {
                self.follow(text, start, open, each);
            }
        }
    }

    /// Whether a pattern may start with this gram.
    fn may_start(&self, gram: u32) -> bool {
        let (word, bit) = slot(gram);
        self.filter.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Looks at every pattern that starts at `start`.
    fn follow(&self, text: &[u8], start: usize, open: &mut OpenFrom, each: &mut dyn FnMut(Found)) {
        let Ok(mut state) = self.automaton.start_state(Anchored::Yes) else { return };
        for (index, byte) in text.iter().enumerate().skip(start) {
            state = self.automaton.next_state(Anchored::Yes, state, *byte);
            if self.automaton.is_dead(state) {
                return;
            }
            if self.automaton.is_match(state) {
                for number in 0..self.automaton.match_len(state) {
                    let pattern = self.automaton.match_pattern(state, number);
                    // A state also lists patterns that end here and start later; those are followed from their own start.
                    if self.automaton.pattern_len(pattern) == index + 1 - start {
                        self.matched(pattern.as_usize(), text, start, index + 1, open, each);
                    }
                }
            }
        }
    }

    fn matched(
        &self,
        pattern: usize,
        text: &[u8],
        start: usize,
        end: usize,
        open: &mut OpenFrom,
        each: &mut dyn FnMut(Found),
    ) {
        match self.meanings.get(pattern) {
            Some(Meaning::Anchor(rule)) => {
                let site = Site::new(text, start, end);
                let hit = rule.inspect(&site);
                if site.undecided() {
                    open.note(start.saturating_sub(rule.back()));
                }
                if let Some(hit) = hit {
                    each(Found {
                        kind: rule.kind(),
                        detector: rule.name(),
                        start: hit.start,
                        end: hit.end,
                        confidence: hit.confidence,
                        layer: None,
                        vault_name: None,
                        prefix: if hit.start == start { rule.anchor() } else { "" },
                    });
                }
            }
            Some(Meaning::Vault { name, layer, case, bytes })
                if *case == Case::Ignored || text.get(start..end) == Some(bytes.as_slice()) =>
            {
                each(Found {
                    kind: FindingKind::VaultValue,
                    detector: "vault_value",
                    start,
                    end,
                    confidence: Confidence::High,
                    layer: *layer,
                    vault_name: self.names.get(*name).cloned(),
                    prefix: "",
                });
            }
            Some(Meaning::Vault { .. }) | None => {}
        }
    }

    /// The first byte from which the rest of the text could be the beginning of a pattern.
    pub(crate) fn unfinished_from(&self, text: &[u8]) -> usize {
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        (first..text.len()).find(|start| self.goes_on(text.get(*start..).unwrap_or_default())).unwrap_or(text.len())
    }

    /// Whether all of `tail` is the beginning of some pattern.
    fn goes_on(&self, tail: &[u8]) -> bool {
        let Ok(mut state) = self.automaton.start_state(Anchored::Yes) else { return true };
        for byte in tail {
            state = self.automaton.next_state(Anchored::Yes, state, *byte);
            if self.automaton.is_dead(state) {
                return false;
            }
        }
        true
    }
}

/// Shifts one byte into a gram. Setting one bit makes letters of both cases equal, and a few signs too, which is harmless.
const fn push_byte(gram: u32, byte: u8) -> u32 {
    (gram << 8) | (byte | 0x20) as u32
}

/// Word and bit of a gram in the filter.
const fn slot(gram: u32) -> (usize, u64) {
    let hash = (gram << 8).wrapping_mul(0x9E37_79B1) >> 16;
    ((hash >> 6) as usize & (FILTER_WORDS - 1), 1 << (hash & 63))
}
