//! Folding: Unicode disguises undone, without touching ASCII.
//!
//! Invisible characters are dropped, tags become the ASCII they spell, compatibility forms are composed (NFKC) and look-alikes
//! become the ASCII they look like. The text is taken cluster by cluster (a character with the marks that follow it), which
//! keeps the span map fine-grained.
//!
//! INVARIANT: folding twice is folding once, and a text of ASCII alone is returned as it is.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::confusables::look_alike;
use super::invisible::{is_invisible, tag_to_ascii};
use super::span_map::{Linear, Piece, SpanMap};

/// Rounds of NFKC and look-alikes on one cluster; a second look-alike can only appear after a first composition.
const MAX_ROUNDS: usize = 4;

/// A folded text and the way back to the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded<'a> {
    /// The folded text.
    pub text: Cow<'a, str>,
    /// From ranges of the folded text to ranges of the original.
    pub map: SpanMap,
}

/// Undoes the Unicode disguises of a text.
#[must_use]
pub fn fold(text: &str) -> Folded<'_> {
    if text.is_ascii() {
        return Folded { text: Cow::Borrowed(text), map: SpanMap::identity(0, text.len()) };
    }
    let mut folder = Folder { text: String::with_capacity(text.len()), pieces: Vec::new() };
    folder.push_text(text, 0);
    Folded { text: Cow::Owned(folder.text), map: SpanMap::from_pieces(folder.pieces) }
}

/// Folds bytes that need not be UTF-8 throughout: what is not is replaced by spaces, which no token contains.
pub(crate) fn fold_bytes(bytes: &[u8]) -> (String, SpanMap) {
    let mut folder = Folder { text: String::with_capacity(bytes.len()), pieces: Vec::new() };
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        folder.push_text(chunk.valid(), at);
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            folder.push(" ", at, chunk.invalid().len(), Linear::No);
            at += chunk.invalid().len();
        }
    }
    (folder.text, SpanMap::from_pieces(folder.pieces))
}

/// What one character folds to.
pub(crate) fn fold_char(c: char) -> String {
    let mut buffer = [0; 4];
    fold_cluster(c.encode_utf8(&mut buffer))
}

struct Folder {
    text: String,
    pieces: Vec<Piece>,
}

impl Folder {
    fn push(&mut self, text: &str, origin: usize, origin_len: usize, linear: Linear) {
        if let (Linear::Yes, Some(last)) = (linear, self.pieces.last_mut())
            && last.linear == Linear::Yes
            && last.origin + last.origin_len == origin
        {
            last.origin_len += origin_len;
            self.text.push_str(text);
            return;
        }
        if !text.is_empty() {
            self.pieces.push(Piece { view: self.text.len(), origin, origin_len, linear });
            self.text.push_str(text);
        }
    }

    fn push_text(&mut self, text: &str, base: usize) {
        let mut rest = text;
        let mut at = base;
        while !rest.is_empty() {
            let ascii = rest.bytes().position(|byte| !byte.is_ascii()).unwrap_or(rest.len());
            // The last ASCII character before other text may carry a combining mark, so it belongs to that cluster.
            let plain = if ascii == rest.len() { ascii } else { ascii.saturating_sub(1) };
            let (head, tail) = rest.split_at_checked(plain).unwrap_or((rest, ""));
            self.push(head, at, head.len(), Linear::Yes);
            at += head.len();
            rest = tail;
            if rest.is_empty() {
                return;
            }
            let mut lead = 0;
            // Leading invisible characters are a cluster of their own, so that marks after them join the right base.
            for (index, c) in rest.char_indices() {
                if index > 0 && !extends(c) {
                    break;
                }
                lead = index + c.len_utf8();
            }
            let (cluster, tail) = rest.split_at_checked(lead).unwrap_or((rest, ""));
            let folded = fold_cluster(cluster);
            let linear = if folded == cluster { Linear::Yes } else { Linear::No };
            self.push(&folded, at, cluster.len(), linear);
            at += cluster.len();
            rest = tail;
        }
    }
}

/// Whether the character belongs to the cluster of the one before it.
fn extends(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    if is_invisible(c) && tag_to_ascii(c).is_none() {
        return true;
    }
    // Some compatibility characters only become marks, or Hangul vowels and finals, once decomposed.
    std::iter::once(c)
        .nfkd()
        .next()
        .is_some_and(|first| is_combining_mark(first) || matches!(first, '\u{1160}'..='\u{11FF}'))
}

fn fold_cluster(cluster: &str) -> String {
    let mut text: String = replace(cluster);
    for _ in 0..MAX_ROUNDS {
        let next: String = replace(&text.nfkc().collect::<String>());
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// One round of dropping what is invisible and replacing what looks alike.
fn replace(text: &str) -> String {
    text.chars()
        .filter_map(|c| {
            if c.is_ascii() {
                return Some(c);
            }
            if let Some(spelled) = tag_to_ascii(c) {
                return Some(spelled);
            }
            (!is_invisible(c)).then(|| look_alike(c).unwrap_or(c))
        })
        .collect()
}
