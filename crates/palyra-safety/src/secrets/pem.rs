//! Private keys in PEM armour, also with line breaks spelled `\n` as in JSON.

use super::entropy::entropy;
use super::site::{Hit, Site, base64_padded};
use crate::findings::Confidence;

/// Longest armoured key; an RSA key of 16,384 bits has twelve thousand characters.
const MAX_KEY: usize = 16 * 1024;

/// Fewest base64 characters inside; the shortest keys (Ed25519) have sixty-four.
const MIN_BODY: usize = 40;

/// A private key that stands by itself.
pub(crate) fn private_key(site: &Site<'_>) -> Option<Hit> {
    if in_service_account(site) { None } else { armoured(site) }
}

/// The private key inside a Google service account file.
pub(crate) fn service_account(site: &Site<'_>) -> Option<Hit> {
    if in_service_account(site) { armoured(site) } else { None }
}

fn in_service_account(site: &Site<'_>) -> bool {
    memchr::memmem::find(site.before(24), b"private_key").is_some()
}

fn armoured(site: &Site<'_>) -> Option<Hit> {
    let label_end = site.run(site.after, 48, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let label = site.slice(site.after, label_end);
    if memchr::memmem::find(label, b"PRIVATE KEY").is_none() || !site.follows(label_end, b"-----") {
        return None;
    }
    let body_start = label_end + 5;
    let (body_end, end, confidence) = match site.find(body_start, MAX_KEY, b"-----END") {
        Some(close) => {
            let label_end = site.run(close + 8, 48, |byte| byte.is_ascii_uppercase() || byte == b' ');
            (close, site.run(label_end, 5, |byte| byte == b'-'), Confidence::High)
        }
        None => {
            let end = site
                .run(body_start, MAX_KEY, |byte| base64_padded(byte) || byte.is_ascii_whitespace() || byte == b'\\');
            (end, end, Confidence::Medium)
        }
    };
    let body = site.slice(body_start, body_end);
    let digits: Vec<u8> = body.iter().copied().filter(|byte| base64_padded(*byte)).collect();
    if digits.len() >= MIN_BODY && entropy(&digits) >= 3.5 { Hit::new(site.at, end, confidence) } else { None }
}
