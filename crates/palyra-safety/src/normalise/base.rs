//! Runs of base64 and hexadecimal digits, found fast and decoded at every alignment.
//!
//! A run is decoded from each of its first four (hex: two) characters, because text may be glued to its front. That also makes the
//! result independent of where a stream happened to be cut. Runs wrapped over lines are joined. A decoding that holds no
//! readable text is dropped: it is a digest, an image or a misaligned reading.

use super::layers::{Layer, OpenFrom};
use super::span_map::{Linear, Piece, SpanMap};

/// Shortest run worth decoding: sixteen bytes of base64 and some.
const MIN_RUN: usize = 22;

/// Shortest run of hexadecimal digits worth decoding.
const MIN_HEX: usize = 32;

/// A line at least this long may be the first of a wrapped block.
const MIN_WRAPPED_LINE: usize = 40;

/// Readable characters in a row that make a decoding worth a look; every structured token is longer.
const MIN_TEXT: usize = 14;

/// Indentation tolerated between lines of a wrapped block.
const MAX_INDENT: usize = 16;

const BASE64: u8 = 1;
const HEX: u8 = 2;
const UPPER: u8 = 4;
const LOWER: u8 = 8;

/// Classes of each byte.
static CLASS: [u8; 256] = classes();

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time, where a wrong index does not build")]
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        let mut class = 0;
        if c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'-' | b'_') {
            class |= BASE64;
        }
        if c.is_ascii_hexdigit() {
            class |= HEX;
        }
        if c.is_ascii_uppercase() {
            class |= UPPER;
        }
        if c.is_ascii_lowercase() {
            class |= LOWER;
        }
        table[byte] = class;
        byte += 1;
    }
    table
}

fn class_of(byte: u8) -> u8 {
    CLASS.get(usize::from(byte)).copied().unwrap_or(0)
}

fn is_base64(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|byte| class_of(*byte) & BASE64 != 0)
}

/// The next run of at least [`MIN_RUN`] characters, probing from its far end so that prose is mostly skipped.
fn next_run(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut start = from;
    'probe: while start + MIN_RUN <= bytes.len() {
        let mut at = start + MIN_RUN;
        if let Some(last) = last_low_byte(bytes, at) {
            start = last + 1;
            continue;
        }
        while at > start {
            at -= 1;
            if !is_base64(bytes, at) {
                start = at + 1;
                continue 'probe;
            }
        }
        return Some((start, end_of_run(bytes, start + MIN_RUN)));
    }
    None
}

/// The last byte below `+`, such as a space or a quote, among the eight before `end`; all eight are looked at in one step.
fn last_low_byte(bytes: &[u8], end: usize) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xFF;
    let word = u64::from_le_bytes(bytes.get(end.checked_sub(8)?..end)?.try_into().ok()?);
    // The high bit of each sum says "seven bits above `*`"; no sum carries into the next byte.
    let above = (word & (0x7F * ONES)) + (0x7F - u64::from(b'*')) * ONES;
    let low = !(above | word) & (0x80 * ONES);
    (low != 0).then(|| end - 1 - (low.leading_zeros() / 8) as usize)
}

fn end_of_run(bytes: &[u8], from: usize) -> usize {
    let mut end = from;
    while is_base64(bytes, end) {
        end += 1;
    }
    end
}

/// Where the next line of a wrapped block starts, after a line break (also one spelled `\n`) and indentation.
fn next_line(bytes: &[u8], end: usize) -> Option<usize> {
    let mut at = match (bytes.get(end), bytes.get(end + 1), bytes.get(end + 2), bytes.get(end + 3)) {
        (Some(b'\\'), Some(b'r'), Some(b'\\'), Some(b'n')) => end + 4,
        (Some(b'\r'), Some(b'\n'), ..) | (Some(b'\\'), Some(b'n'), ..) => end + 2,
        (Some(b'\n'), ..) => end + 1,
        _ => return None,
    };
    let limit = at + MAX_INDENT;
    while at < limit && matches!(bytes.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    Some(at)
}

/// Decodes every run of the text.
pub(crate) fn decode_runs(bytes: &[u8], open: &mut OpenFrom, each: &mut dyn FnMut(Layer, Vec<u8>, SpanMap)) {
    let mut from = 0;
    while let Some((start, mut end)) = next_run(bytes, from) {
        let mut line_start = start;
        let mut clean = Vec::new();
        let mut pieces = Vec::new();
        loop {
            pieces.push(Piece {
                view: clean.len(),
                origin: line_start,
                origin_len: end - line_start,
                linear: Linear::Yes,
            });
            clean.extend_from_slice(bytes.get(line_start..end).unwrap_or_default());
            if end - line_start < MIN_WRAPPED_LINE {
                break;
            }
            let Some(next) = next_line(bytes, end) else {
                // A carriage return or backslash at the very end may be half a line break.
                if end + 3 >= bytes.len() && bytes.get(end).is_none_or(|b| matches!(b, b'\r' | b'\\')) {
                    open.note(start);
                }
                break;
            };
            if next >= bytes.len() {
                open.note(start);
            }
            let next_end = end_of_run(bytes, next);
            if next_end - next < 4 {
                if next_end >= bytes.len() {
                    open.note(start);
                }
                break;
            }
            line_start = next;
            end = next_end;
        }
        if end >= bytes.len() {
            open.note(start);
        }
        decode_clean(&clean, &pieces, each);
        from = end;
    }
}

fn decode_clean(clean: &[u8], pieces: &[Piece], each: &mut dyn FnMut(Layer, Vec<u8>, SpanMap)) {
    let mut all = 0;
    let mut at = 0;
    while at < clean.len() {
        let rest = clean.get(at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| class_of(**byte) & HEX != 0).count();
        if digits >= MIN_HEX {
            all = all.max(digits);
            for skipped in 0..2 {
                let decoded = decode_hex(rest.get(skipped..digits).unwrap_or_default());
                if holds_text(&decoded) {
                    each(Layer::Hex, decoded, SpanMap::grouped(2, 1, at + skipped, pieces.to_vec()));
                }
            }
        }
        at += digits.max(1);
    }
    let classes = clean.iter().fold(0, |seen, byte| seen | class_of(*byte));
    // Readable text in base64 always mixes cases; paths, rulers and snake_case names often do not.
    if all == clean.len() || classes & (UPPER | LOWER) != UPPER | LOWER {
        return;
    }
    for skipped in 0..4 {
        let decoded = decode_base64(clean.get(skipped..).unwrap_or_default());
        if holds_text(&decoded) {
            each(Layer::Base64, decoded, SpanMap::grouped(4, 3, skipped, pieces.to_vec()));
        }
    }
}

/// Decodes characters of either base64 alphabet, without padding; an incomplete last group gives what it holds.
pub(crate) fn decode_base64(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4 + 2);
    for group in text.chunks(4) {
        let bits = group.iter().fold(0_u32, |bits, byte| (bits << 6) | sextet(*byte)) << (6 * (4 - group.len()));
        let [_, first, second, third] = bits.to_be_bytes();
        out.extend_from_slice([first, second, third].get(..group.len().saturating_sub(1)).unwrap_or_default());
    }
    out
}

fn sextet(byte: u8) -> u32 {
    u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    })
}

fn decode_hex(digits: &[u8]) -> Vec<u8> {
    let nibble = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as u8;
    digits.chunks_exact(2).map(|pair| pair.iter().fold(0_u8, |value, digit| (value << 4) | nibble(digit))).collect()
}

/// Whether some stretch can be read: ASCII, or UTF-8 throughout.
fn holds_text(bytes: &[u8]) -> bool {
    let mut run = 0;
    for byte in bytes {
        if matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n') {
            run += 1;
            if run >= MIN_TEXT {
                return true;
            }
        } else {
            run = 0;
        }
    }
    bytes.len() >= MIN_TEXT && !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok()
}
