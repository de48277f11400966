//! Values of high entropy assigned to a telling name: `api_key = "…"`, `"token": "…"`, `PASSWORD=…`.
//!
//! The weakest detector: nothing but a name and a look. So it asks for a plain assignment, refuses what reads like words, paths
//! or code, and never claims more than medium confidence.

use super::entropy::{entropy, is_placeholder, looks_random};
use super::site::{Hit, Site};
use crate::findings::Confidence;

/// Longest value looked at.
const MAX_VALUE: usize = 256;

/// How the name goes on after the telling word, as in `tokenValue` or `secret-id`.
const MAX_NAME_TAIL: usize = 24;

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn in_bare_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'.' | b'~' | b'=')
}

/// Passwords use signs that tokens do not; the ones left out end a value in some common notation.
fn in_bare_password(byte: u8) -> bool {
    in_bare_value(byte) || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'*' | b'@' | b'^' | b'?')
}

fn in_quoted_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b'<' | b'>')
}

/// A random token after a telling name.
pub(crate) fn token(site: &Site<'_>) -> Option<Hit> {
    let (start, end) = assigned_value(site, in_bare_value)?;
    if is_token(site.slice(start, end)) { Hit::new(start, end, Confidence::Medium) } else { None }
}

/// A password after its name: shorter than a token, so it must mix kinds of characters.
pub(crate) fn password(site: &Site<'_>) -> Option<Hit> {
    let (start, end) = assigned_value(site, in_bare_password)?;
    let value = site.slice(start, end);
    if is_token(value) || is_strong_password(value) { Hit::new(start, end, Confidence::Medium) } else { None }
}

/// Finds `name = value` in its many spellings and gives the place of the value.
fn assigned_value(site: &Site<'_>, bare: fn(u8) -> bool) -> Option<(usize, usize)> {
    let mut at = site.run(site.after, MAX_NAME_TAIL, in_name);
    at = site.run(at, 3, |byte| matches!(byte, b'"' | b'\'' | b'\\' | b']'));
    at = site.run(at, 3, |byte| matches!(byte, b' ' | b'\t'));
    let separator = site.run(at, 2, |byte| matches!(byte, b'=' | b':' | b'>'));
    if separator == at || site.slice(at, separator) == b"::" || site.slice(at, separator) == b"==" {
        return None;
    }
    at = site.run(separator, 3, |byte| matches!(byte, b' ' | b'\t'));
    let quoted = site.run(at, 3, |byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\'));
    if quoted > at {
        let end = site.run(quoted, MAX_VALUE, in_quoted_value);
        let closed = site.byte(end).is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\'));
        return (closed || site.undecided()).then_some((quoted, end));
    }
    let end = site.run(at, MAX_VALUE, bare);
    // What goes on with a bracket or a path separator is code, not a value.
    let code = site.byte(end).is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b':' | b'!' | b'<' | b'?' | b'*'));
    (!code).then_some((at, end))
}

fn is_token(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    if value.len() < 16 || digits < 2 || letters < 2 || is_placeholder(value) || !looks_random(value) {
        return false;
    }
    // Words joined by separators (names, paths, versions) have short or plain parts; a token has one long mixed part.
    value.split(|byte| matches!(byte, b'_' | b'-' | b'.' | b'/' | b':')).any(|part| part.len() >= 12 && is_mixed(part))
}

/// Whether letters and digits, or cases, alternate as they do by chance and not in words.
fn is_mixed(part: &[u8]) -> bool {
    let class = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let changes = part.windows(2).filter(|pair| matches!(pair, [a, b] if class(a) != class(b))).count();
    let digits = part.iter().any(u8::is_ascii_digit);
    digits && changes * 5 >= part.len() && entropy(part) >= 2.8
}

fn is_strong_password(value: &[u8]) -> bool {
    let kinds = [
        value.iter().any(u8::is_ascii_lowercase),
        value.iter().any(u8::is_ascii_uppercase),
        value.iter().any(u8::is_ascii_digit),
        value.iter().any(u8::is_ascii_punctuation),
    ];
    let code = value.iter().any(|byte| matches!(byte, b'(' | b'{' | b'[' | b'|'));
    value.len() >= 8
        && kinds.iter().filter(|kind| **kind).count() >= 3
        && value.iter().any(u8::is_ascii_digit)
        && entropy(value) >= 2.5
        && !code
        && !is_placeholder(value)
}
