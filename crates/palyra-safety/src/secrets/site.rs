//! The place a detector looks at: an anchor in a text, read through methods that notice the end of the text.
//!
//! INVARIANT: a detector reads forward only through [`Site::byte`] and what is built on it. Whoever asks for a byte past the end
//! marks the site as undecided, which is how a stream knows that the answer may change with the next chunk.

use std::cell::Cell;

use crate::findings::Confidence;

/// An anchor in a text.
pub(crate) struct Site<'a> {
    text: &'a [u8],
    /// First byte of the anchor.
    pub(crate) at: usize,
    /// One past the anchor.
    pub(crate) after: usize,
    touched_end: Cell<bool>,
}

/// What a detector found at a site.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) confidence: Confidence,
}

impl Hit {
    pub(crate) const fn new(start: usize, end: usize, confidence: Confidence) -> Option<Self> {
        Some(Self { start, end, confidence })
    }
}

impl<'a> Site<'a> {
    pub(crate) const fn new(text: &'a [u8], at: usize, after: usize) -> Self {
        Self { text, at, after, touched_end: Cell::new(false) }
    }

    /// Whether more text could change the answer.
    pub(crate) fn undecided(&self) -> bool {
        self.touched_end.get()
    }

    /// The byte at a position.
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        let byte = self.text.get(at).copied();
        if byte.is_none() {
            self.touched_end.set(true);
        }
        byte
    }

    /// Bytes that were already read, or stand before the anchor.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        self.text.get(start..end.min(self.text.len())).unwrap_or_default()
    }

    /// The anchor as it is spelled here.
    pub(crate) fn anchor(&self) -> &'a [u8] {
        self.slice(self.at, self.after)
    }

    /// Up to `len` bytes before the anchor.
    pub(crate) fn before(&self, len: usize) -> &'a [u8] {
        self.slice(self.at.saturating_sub(len), self.at)
    }

    /// Whether the anchor does not continue a word.
    pub(crate) fn starts_word(&self) -> bool {
        self.before(1).first().is_none_or(|byte| !byte.is_ascii_alphanumeric())
    }

    /// The end of the run of `class` that starts at `from`, at most `max` bytes on.
    pub(crate) fn run(&self, from: usize, max: usize, class: fn(u8) -> bool) -> usize {
        let mut end = from;
        while end - from < max && self.byte(end).is_some_and(class) {
            end += 1;
        }
        end
    }

    /// Whether the text goes on with these bytes.
    pub(crate) fn follows(&self, from: usize, wanted: &[u8]) -> bool {
        wanted.iter().enumerate().all(|(offset, byte)| self.byte(from + offset) == Some(*byte))
    }

    /// Where `needle` next starts, looking at most `max` bytes on.
    pub(crate) fn find(&self, from: usize, max: usize, needle: &[u8]) -> Option<usize> {
        let window = self.slice(from, from.saturating_add(max));
        let found = memchr::memmem::find(window, needle);
        if found.is_none() && window.len() < max {
            self.touched_end.set(true);
        }
        found.map(|offset| from + offset)
    }
}

pub(crate) const fn base62(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(crate) const fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(crate) const fn base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

pub(crate) const fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

pub(crate) const fn base64_padded(byte: u8) -> bool {
    base64(byte) || byte == b'='
}

pub(crate) const fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

pub(crate) const fn base32(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7')
}

pub(crate) const fn upper_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

pub(crate) const fn dotted(byte: u8) -> bool {
    base64url(byte) || matches!(byte, b'.' | b'~')
}

/// Both alphabets of base64, padded: tokens that are put together from parts use either.
pub(crate) const fn base64_any(byte: u8) -> bool {
    base64_padded(byte) || matches!(byte, b'_' | b'-')
}

/// Hexadecimal numbers joined by hyphens.
pub(crate) const fn hex_parts(byte: u8) -> bool {
    hex(byte) || byte == b'-'
}
