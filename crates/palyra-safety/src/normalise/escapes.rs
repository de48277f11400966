//! Escapes inside words: percent encoding, HTML character references, backslash escapes.
//!
//! A word is what stands between ASCII white space (or characters beyond ASCII, which folding deals with first). When a word
//! holds an escape, the whole word is decoded, so that what stands around the escape is read together with it.

use super::layers::Layer;
use super::span_map::{Linear, Piece, SpanMap};

/// How far a word is followed to either side of its first escape.
const MAX_WORD: usize = 16 * 1024;

/// Named references that stand for characters tokens and instructions are made of.
const NAMED: &[(&[u8], char)] = &[
    (b"amp", '&'),
    (b"apos", '\''),
    (b"colon", ':'),
    (b"comma", ','),
    (b"commat", '@'),
    (b"dash", '-'),
    (b"dollar", '$'),
    (b"equals", '='),
    (b"excl", '!'),
    (b"gt", '>'),
    (b"hyphen", '-'),
    (b"lbrack", '['),
    (b"lcub", '{'),
    (b"lowbar", '_'),
    (b"lpar", '('),
    (b"lt", '<'),
    (b"nbsp", ' '),
    (b"NewLine", '\n'),
    (b"num", '#'),
    (b"percnt", '%'),
    (b"period", '.'),
    (b"plus", '+'),
    (b"quot", '"'),
    (b"rbrack", ']'),
    (b"rcub", '}'),
    (b"rpar", ')'),
    (b"semi", ';'),
    (b"sol", '/'),
    (b"Tab", '\t'),
    (b"verbar", '|'),
];

/// Decodes each word that holds an escape, once per kind of escape.
pub(crate) fn decode_words(bytes: &[u8], each: &mut dyn FnMut(Layer, Vec<u8>, SpanMap)) {
    let mut done = [0; 3];
    for at in memchr::memchr3_iter(b'%', b'&', b'\\', bytes) {
        let rest = bytes.get(at..).unwrap_or_default();
        let (layer, slot) = match rest.first() {
            Some(b'%') => (Layer::Percent, 0),
            Some(b'&') => (Layer::HtmlEntity, 1),
            _ => (Layer::Backslash, 2),
        };
        let Some(decoded_to) = done.get_mut(slot) else { continue };
        if at < *decoded_to || !worth_decoding(layer, rest) {
            continue;
        }
        let (start, end) = word_around(bytes, at, *decoded_to);
        *decoded_to = end;
        let (text, map) = decode_word(bytes.get(start..end).unwrap_or_default(), start, layer);
        each(layer, text, map);
    }
}

/// Line breaks and quotes are escaped in every source file; only escapes that can hide something start a decoding.
fn worth_decoding(layer: Layer, rest: &[u8]) -> bool {
    (layer != Layer::Backslash || matches!(rest.get(1), Some(b'x' | b'u' | b'U' | b'/' | b'0'..=b'7')))
        && escape(layer, rest).is_some()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_whitespace()
}

fn word_around(bytes: &[u8], at: usize, floor: usize) -> (usize, usize) {
    let before = bytes.get(floor.max(at.saturating_sub(MAX_WORD))..at).unwrap_or_default();
    let start = at - before.iter().rev().take_while(|byte| is_word(**byte)).count();
    let after = bytes.get(at..bytes.len().min(at + MAX_WORD)).unwrap_or_default();
    let end = at + after.iter().take_while(|byte| is_word(**byte)).count();
    (start, end)
}

fn decode_word(word: &[u8], origin: usize, layer: Layer) -> (Vec<u8>, SpanMap) {
    let mut text = Vec::with_capacity(word.len());
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    while let Some(rest) = word.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some((decoded, len)) = escape(layer, rest) {
            pieces.push(Piece { view: text.len(), origin: origin + at, origin_len: len, linear: Linear::No });
            text.extend_from_slice(&decoded);
            at += len;
            continue;
        }
        match pieces.last_mut() {
            Some(last) if last.linear == Linear::Yes => last.origin_len += 1,
            _ => pieces.push(Piece { view: text.len(), origin: origin + at, origin_len: 1, linear: Linear::Yes }),
        }
        text.extend(rest.first());
        at += 1;
    }
    (text, SpanMap::from_pieces(pieces))
}

/// The bytes an escape at the start of `rest` stands for, and its length.
fn escape(layer: Layer, rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    match layer {
        Layer::Percent => {
            let value = (rest.first() == Some(&b'%')).then(|| number(rest.get(1..3)?, 16)).flatten()?;
            Some((vec![u8::try_from(value).ok()?], 3))
        }
        Layer::HtmlEntity => html(rest),
        Layer::Backslash => backslash(rest),
        Layer::Unicode | Layer::Base64 | Layer::Hex => None,
    }
}

fn html(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let body = rest.strip_prefix(b"&")?;
    let end = body.iter().take(10).position(|byte| *byte == b';')?;
    let name = body.get(..end)?;
    let c = match name.strip_prefix(b"#") {
        Some(code) => {
            let value = match code.strip_prefix(b"x").or_else(|| code.strip_prefix(b"X")) {
                Some(digits) => number(digits, 16)?,
                None => number(code, 10)?,
            };
            char::from_u32(value)?
        }
        None => NAMED.iter().find(|(known, _)| *known == name).map(|(_, c)| *c)?,
    };
    Some((c.to_string().into_bytes(), end + 2))
}

fn backslash(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let one = |byte: u8| Some((vec![byte], 2));
    let code = |value: u32, len: usize| Some((char::from_u32(value)?.to_string().into_bytes(), len));
    if rest.first() != Some(&b'\\') {
        return None;
    }
    match *rest.get(1)? {
        b'n' => one(b'\n'),
        b'r' => one(b'\r'),
        b't' => one(b'\t'),
        byte @ (b'/' | b'"' | b'\'' | b'\\') => one(byte),
        b'x' => Some((vec![u8::try_from(number(rest.get(2..4)?, 16)?).ok()?], 4)),
        b'u' if rest.get(2) == Some(&b'{') => {
            let end = rest.iter().take(10).position(|byte| *byte == b'}')?;
            code(number(rest.get(3..end)?, 16)?, end + 1)
        }
        b'u' => code(number(rest.get(2..6)?, 16)?, 6),
        b'U' => code(number(rest.get(2..10)?, 16)?, 10),
        b'0'..=b'7' => Some((vec![u8::try_from(number(rest.get(1..4)?, 8)?).ok()?], 4)),
        _ => None,
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u32, |value, digit| value.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?))
}
