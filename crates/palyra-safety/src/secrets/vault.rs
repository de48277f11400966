//! The spellings in which a vault value may turn up: raw and in every common encoding.
//!
//! Spellings are searched for as they stand, which finds a value inside larger encoded material at any alignment. Deeper nesting is
//! found by unwrapping layers first; the raw spelling is then looked for in each view.

use std::fmt::Write;

use palyra_common::SecretString;

use crate::error::SafetyError;
use crate::normalise::Layer;

/// Shortest value that can be looked for at all.
const MIN_VALUE: usize = 4;

/// Shortest encoded spelling looked for; less would turn up by chance.
const MIN_SPELLING: usize = 6;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A secret of the vault, to be found wherever it turns up.
#[derive(Debug, Clone)]
pub struct VaultEntry {
    /// Its name, which findings show.
    pub name: String,
    /// Its value, which nothing shows.
    pub value: SecretString,
}

/// One way to write a value.
pub(crate) struct Spelling {
    pub(crate) bytes: Vec<u8>,
    pub(crate) layer: Option<Layer>,
    pub(crate) case: Case,
}

/// Whether upper and lower case mean the same in a spelling.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Matters,
    Ignored,
}

/// All spellings of an entry's value, without repetitions.
pub(crate) fn spellings(entry: &VaultEntry) -> Result<Vec<Spelling>, SafetyError> {
    let value = entry.value.expose().as_bytes();
    if value.len() < MIN_VALUE {
        return Err(SafetyError::VaultValueTooShort { name: entry.name.clone(), bytes: value.len() });
    }
    let mut all = vec![Spelling { bytes: value.to_vec(), layer: None, case: Case::Matters }];
    let mut add = |bytes: Vec<u8>, layer: Layer, case: Case| {
        if bytes.len() >= MIN_SPELLING && all.iter().all(|known| known.bytes != bytes) {
            all.push(Spelling { bytes, layer: Some(layer), case });
        }
    };
    for alphabet in [STANDARD, URL_SAFE] {
        for alignment in 0..3 {
            add(base64_inside(value, alignment, alphabet), Layer::Base64, Case::Matters);
        }
    }
    add(joined(value, |out, byte| write!(out, "{byte:02x}")), Layer::Hex, Case::Ignored);
    add(joined(value, |out, byte| write!(out, "%{byte:02x}")), Layer::Percent, Case::Ignored);
    for hex in [percent_reserved as fn(&mut String, u8) -> std::fmt::Result, percent_reserved_lower] {
        add(joined(value, hex), Layer::Percent, Case::Matters);
    }
    add(joined(value, |out, byte| write!(out, "\\x{byte:02x}")), Layer::Backslash, Case::Ignored);
    let text = entry.value.expose();
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default();
    add(json.as_bytes().to_vec(), Layer::Backslash, Case::Matters);
    add(json.replace('/', "\\/").into_bytes(), Layer::Backslash, Case::Matters);
    add(joined_units(text), Layer::Backslash, Case::Ignored);
    add(html(text).into_bytes(), Layer::HtmlEntity, Case::Matters);
    Ok(all)
}

/// The characters that every base64 text shows which holds the value after `alignment` other bytes (modulo three).
fn base64_inside(value: &[u8], alignment: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let padded: Vec<u8> = std::iter::repeat_n(0, alignment).chain(value.iter().copied()).collect();
    let mut out = Vec::new();
    for group in padded.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        // Characters that also depend on bytes after the value are left out.
        for index in 0..(group.len() * 8 / 6) {
            out.extend(alphabet.get(((bits >> (18 - 6 * index)) & 63) as usize));
        }
    }
    // Characters that also depend on bytes before it.
    out.drain(..(alignment * 8).div_ceil(6).min(out.len()));
    out
}

fn joined(value: &[u8], mut write_byte: impl FnMut(&mut String, u8) -> std::fmt::Result) -> Vec<u8> {
    let mut out = String::with_capacity(value.len() * 4);
    for byte in value {
        // Writing into a string does not fail.
        let _ = write_byte(&mut out, *byte);
    }
    out.into_bytes()
}

fn percent_reserved(out: &mut String, byte: u8) -> std::fmt::Result {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        write!(out, "{}", char::from(byte))
    } else {
        write!(out, "%{byte:02X}")
    }
}

fn percent_reserved_lower(out: &mut String, byte: u8) -> std::fmt::Result {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        write!(out, "{}", char::from(byte))
    } else {
        write!(out, "%{byte:02x}")
    }
}

/// `\u0061\u0062…`
fn joined_units(text: &str) -> Vec<u8> {
    let mut out = String::new();
    for unit in text.encode_utf16() {
        let _ = write!(out, "\\u{unit:04x}");
    }
    out.into_bytes()
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
