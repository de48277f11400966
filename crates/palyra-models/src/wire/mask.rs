//! Keys in what servers say.
//!
//! Some servers repeat the key they were sent, as it is, encoded, or cut into pieces. Every error that holds a server's words passes through here
//! before anybody sees it, and so does what a model answers (`masked_events`). A key is found as it is, with any of its characters escaped, in
//! hexadecimal, in Base64 at every alignment, and with other characters put between its own.
//!
//! Not covered: a server that transforms the key in another way on purpose. It was given the key.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use palyra_common::SecretString;
use palyra_common::escaped::{Escaped, Found};
use zeroize::Zeroizing;

use crate::error::{ModelError, TRUNCATED};

/// Shortest key that is looked for. Anything shorter is no key, and would tear words apart.
const SHORTEST: usize = 4;
/// Shortest key that is looked for in pieces and encodings; short ones would be found in innocent words.
const SHORTEST_HIDDEN: usize = 8;
/// Shortest key that is looked for in answers. Keys that a local server does not check are words that an answer may well hold (`lm-studio`).
const SHORTEST_IN_ANSWERS: usize = 20;
/// Most bytes between two characters of a key that was cut into pieces.
const MAX_GAP: usize = 8;
/// Most characters of a key that may stand at the end of a message that was cut off there.
const MAX_REST: usize = 3;
/// What stands in the place of a key.
pub(super) const REDACTED: &str = "[redacted]";

/// Takes one key out of texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask(Option<Arc<Needles>>);

/// Whether more may follow what is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is the whole text.
    Final,
    /// It was cut off, or the rest is on its way: what could be the start of a key at the end is not shown.
    Open,
}

/// The ways in which a key can be written.
#[derive(Debug)]
struct Needles {
    key: SecretString,
    /// With any of its characters escaped.
    escaped: Escaped,
    /// In Base64, without the characters at the edges that depend on the neighbours.
    base64: Vec<Zeroizing<Vec<u8>>>,
    /// Bytes that any of these can begin with.
    begins: Vec<u8>,
}

impl Mask {
    pub(crate) fn new(key: Option<SecretString>) -> Self {
        Self(key.filter(|key| key.expose().len() >= SHORTEST).map(|key| Arc::new(Needles::new(key))))
    }

    /// The same mask for answers, which keeps nothing back if the key is too short to be one.
    pub(super) fn for_answers(&self) -> Self {
        Self(self.0.clone().filter(|needles| needles.key.expose().len() >= SHORTEST_IN_ANSWERS))
    }

    /// The same error without the key.
    pub(crate) fn clean(&self, mut error: ModelError) -> ModelError {
        let Some(needles) = &self.0 else { return error };
        error.message = match error.message.strip_suffix(TRUNCATED) {
            None => needles.mask(&error.message, End::Final).0,
            // The key may have been cut in two.
            Some(text) => {
                let (mut shown, rest) = needles.mask(text, End::Open);
                shown.push_str(if rest.len() > MAX_REST { REDACTED } else { rest });
                shown.push(TRUNCATED);
                shown
            }
        };
        error
    }

    /// The same text without the key.
    pub(super) fn clean_text(&self, text: &str) -> String {
        self.0.as_ref().map_or_else(|| text.to_owned(), |needles| needles.mask(text, End::Final).0)
    }

    /// Of the text so far, what may be shown, and in `text` what could be the start of a key.
    pub(super) fn take_decided(&self, text: &mut String) -> String {
        let Some(needles) = &self.0 else { return std::mem::take(text) };
        let (shown, rest) = needles.mask(text, End::Open);
        *text = rest.to_owned();
        shown
    }
}

impl Needles {
    fn new(key: SecretString) -> Self {
        let hidden = key.expose().len() >= SHORTEST_HIDDEN;
        let base64 = if hidden { base64_forms(key.expose()) } else { Vec::new() };
        let first = key.expose().bytes().next().unwrap_or_default();
        let hex = format!("{first:02x}").bytes().next().unwrap_or_default();
        let mut begins =
            vec![first, first.to_ascii_lowercase(), first.to_ascii_uppercase(), hex, hex.to_ascii_uppercase()];
        begins.extend(*b"%\\&+");
        begins.extend(base64.iter().filter_map(|form| form.first()));
        Self { escaped: Escaped::new(key.expose()), base64, begins, key }
    }

    /// The text without the key, and what stands at its end that could be the start of one.
    fn mask<'t>(&self, text: &'t str, end: End) -> (String, &'t str) {
        let bytes = text.as_bytes();
        let mut shown = String::with_capacity(text.len());
        let (mut at, mut copied) = (0, 0);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.find_at(rest) {
                Found::Whole(length) => {
                    shown.push_str(text.get(copied..at).unwrap_or_default());
                    shown.push_str(REDACTED);
                    at += length.max(1);
                    copied = at;
                }
                Found::Start if end == End::Open => break,
                Found::Start | Found::Nothing => at += 1,
            }
        }
        // INVARIANT: a match begins and ends at ASCII characters, since a key that goes into a header has no others.
        shown.push_str(text.get(copied..at).unwrap_or_default());
        (shown, text.get(at..).unwrap_or_default())
    }

    fn find_at(&self, rest: &[u8]) -> Found {
        if !rest.first().is_some_and(|byte| self.begins.contains(byte)) {
            return Found::Nothing;
        }
        let key = self.key.expose().as_bytes();
        let mut ways = vec![self.escaped.find_at(rest)];
        if key.len() >= SHORTEST_HIDDEN {
            ways.push(pieces_at(rest, key));
            ways.push(hex_at(rest, key));
            ways.extend(self.base64.iter().map(|form| pieces_at(rest, form)));
        }
        let whole = ways.iter().find(|found| matches!(found, Found::Whole(_)));
        let start = || ways.iter().find(|found| **found == Found::Start);
        whole.or_else(start).copied().unwrap_or(Found::Nothing)
    }
}

/// The key in Base64. Within a longer text (`user:key`) it begins at any of three places of a group.
fn base64_forms(key: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut forms = Vec::new();
    for shift in 0..3_usize {
        let padded = Zeroizing::new([vec![0; shift], key.as_bytes().to_vec()].concat());
        let (first, last) = ((shift * 8).div_ceil(6), padded.len() * 8 / 6);
        for text in [STANDARD_NO_PAD.encode(&*padded), URL_SAFE_NO_PAD.encode(&*padded)] {
            forms.extend(text.as_bytes().get(first..last).map(|form| Zeroizing::new(form.to_vec())));
        }
    }
    forms.retain(|form| form.len() >= SHORTEST_HIDDEN);
    forms.dedup();
    forms
}

/// Whether these bytes stand here, with at most a few that are no letters or digits between two of them.
fn pieces_at(rest: &[u8], wanted: &[u8]) -> Found {
    let mut at = 0_usize;
    for (position, byte) in wanted.iter().enumerate() {
        let end = at.saturating_add(MAX_GAP);
        loop {
            match rest.get(at) {
                None => return Found::Start,
                Some(here) if here == byte => break,
                Some(here) if position > 0 && at < end && !here.is_ascii_alphanumeric() => at += 1,
                Some(_) => return Found::Nothing,
            }
        }
        at += 1;
    }
    Found::Whole(at)
}

/// Whether these bytes stand here in hexadecimal, in any case and with something like `:`, ` ` or `, 0x` between two of them.
fn hex_at(rest: &[u8], wanted: &[u8]) -> Found {
    let mut at = 0_usize;
    for (position, byte) in wanted.iter().enumerate() {
        let end = at.saturating_add(MAX_GAP);
        while position > 0 && at < end && rest.get(at).is_some_and(|here| !here.is_ascii_alphanumeric()) {
            at += 1;
        }
        if position > 0 && matches!(rest.get(at..at + 2), Some([b'0', b'x' | b'X'])) {
            at += 2;
        } else if position > 0 && matches!(rest.get(at), Some(b'x' | b'X')) {
            at += 1;
        }
        for digit in format!("{byte:02x}").bytes() {
            match rest.get(at) {
                None => return Found::Start,
                Some(here) if here.eq_ignore_ascii_case(&digit) => at += 1,
                Some(_) => return Found::Nothing,
            }
        }
    }
    Found::Whole(at)
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
