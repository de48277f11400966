//! The frame in which untrusted text enters a prompt.
//!
//! A frame is an opening line, the escaped text and a closing line, both lines with a nonce that the caller chooses afresh for each
//! frame. Two independent reasons make it unforgeable: the text does not know the nonce, and after escaping it holds no `<`
//! at all, nor anything that looks or folds like one. Invisible and direction characters are spelled out, so a reader sees them.
//!
//! INVARIANT: [`unframe`] of [`frame`] gives the text back, byte for byte.

use std::fmt::Write;

use crate::error::SafetyError;
use crate::normalise::{fold_char, is_invisible};

const NAME: &str = "untrusted-data";

/// Chosen by the caller, once per frame; this crate makes no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameNonce([u8; 16]);

impl FrameNonce {
    /// A nonce from bytes that the untrusted side cannot foresee.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn hex(self) -> String {
        self.0.iter().fold(String::new(), |mut out, byte| {
            // Writing into a string does not fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
    }
}

/// What was inside a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Where the text came from, as it was framed.
    pub source: String,
    /// The text.
    pub content: String,
}

/// Puts untrusted text into a frame.
#[must_use]
pub fn frame(content: &str, source: &str, nonce: FrameNonce) -> String {
    let id = nonce.hex();
    let mut out = String::with_capacity(content.len() + 160);
    // Writing into a string does not fail.
    let _ = write!(out, "<{NAME} id=\"{id}\" source=\"");
    escape(source, Place::Attribute, &mut out);
    out.push_str("\">\n");
    escape(content, Place::Body, &mut out);
    let _ = write!(out, "\n</{NAME} id=\"{id}\">");
    out
}

/// Takes the text out of a frame made with this nonce.
pub fn unframe(framed: &str, nonce: FrameNonce) -> Result<Frame, SafetyError> {
    let id = nonce.hex();
    let wrong = |reason| SafetyError::NotAFrame { reason };
    let rest = framed
        .strip_prefix(&format!("<{NAME} id=\"{id}\" source=\""))
        .ok_or_else(|| wrong("it does not open with this nonce"))?;
    let (source, rest) = rest.split_once("\">\n").ok_or_else(|| wrong("the opening line does not end"))?;
    let body = rest
        .strip_suffix(&format!("\n</{NAME} id=\"{id}\">"))
        .ok_or_else(|| wrong("it does not close with this nonce"))?;
    if body.contains('<') || source.contains('<') {
        return Err(wrong("its content is not escaped"));
    }
    Ok(Frame { source: unescape(source)?, content: unescape(body)? })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Attribute,
    Body,
}

fn escape(text: &str, place: Place, out: &mut String) {
    for c in text.chars() {
        if must_escape(c, place) {
            let _ = write!(out, "&#x{:X};", u32::from(c));
        } else {
            out.push(c);
        }
    }
}

fn must_escape(c: char, place: Place) -> bool {
    if c.is_ascii() {
        return matches!(c, '<' | '>' | '&')
            || (c.is_ascii_control() && !matches!(c, '\n' | '\t'))
            || (place == Place::Attribute && matches!(c, '"' | '\n' | '\t'));
    }
    // What folds to a delimiter could be taken for one by a reader that folds.
    is_invisible(c)
        || c.is_control()
        || fold_char(c).contains(['<', '>', '&', '"'])
        || matches!(c, '\u{2028}' | '\u{2029}' | '«' | '»' | '≪' | '≫' | '˂' | '˃' | '❮' | '❯' | 'ᐸ' | 'ᐳ' | '𐊆')
}

fn unescape(text: &str) -> Result<String, SafetyError> {
    let wrong = SafetyError::NotAFrame { reason: "an escape in it is malformed" };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("&") {
        out.push_str(before);
        let (code, tail) =
            after.strip_prefix("#x").and_then(|after| after.split_once(';')).ok_or_else(|| wrong.clone())?;
        let c = u32::from_str_radix(code, 16).ok().and_then(char::from_u32).ok_or_else(|| wrong.clone())?;
        out.push(c);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}
