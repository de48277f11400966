//! Finding a secret again in what a host answers.
//!
//! An echo server, an error page or a debug header may hand back what was sent to it. Answers of hosts that secrets are bound to are searched, as
//! they stream, for each secret as it is, in Base64 at every alignment, in hex, percent-encoded, and as JSON and HTML write it; what is found is
//! overwritten with asterisks of the same length, so that lengths announced before stay true. Only as much is held back as could still become a
//! match, so an answer that trickles is not delayed.
//!
//! Not covered: a host that transforms the secret in another way on purpose. Such a host was given the secret.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use memchr::memmem;
use palyra_common::SecretString;
use zeroize::Zeroizing;

/// Every text that would give a secret away.
#[derive(Default)]
pub(crate) struct Needles(Vec<Zeroizing<Vec<u8>>>);

impl Needles {
    pub(crate) fn of(secrets: &[SecretString]) -> Self {
        let mut needles: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        for secret in secrets {
            for needle in spellings(secret.expose().as_bytes()) {
                if !needles.contains(&needle) {
                    needles.push(needle);
                }
            }
        }
        Self(needles)
    }

    /// Overwrites every match; says how many there were.
    fn mask(&self, text: &mut [u8]) -> u64 {
        let mut found = 0;
        for needle in &self.0 {
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|rest| memmem::find(rest, needle)) {
                let start = from + at;
                if let Some(range) = text.get_mut(start..start + needle.len()) {
                    range.fill(b'*');
                }
                found += 1;
                from = start + needle.len();
            }
        }
        found
    }

    /// How many bytes at the end of `text` could be the start of a match.
    fn undecided(&self, text: &[u8]) -> usize {
        let longest = |needle: &Zeroizing<Vec<u8>>| {
            let most = text.len().min(needle.len().saturating_sub(1));
            (1..=most).rev().find(|length| needle.get(..*length).is_some_and(|front| text.ends_with(front)))
        };
        self.0.iter().filter_map(longest).max().unwrap_or(0)
    }

    /// Masks a whole text, such as a header.
    pub(crate) fn mask_whole(&self, text: &[u8]) -> Option<(Vec<u8>, u64)> {
        let mut copy = text.to_vec();
        let found = self.mask(&mut copy);
        (found > 0).then_some((copy, found))
    }
}

fn spellings(secret: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut all: Vec<Vec<u8>> = vec![secret.to_vec()];
    // Header names arrive in lower case, and some servers shout.
    all.push(secret.to_ascii_lowercase());
    all.push(secret.to_ascii_uppercase());
    all.push(hex::encode(secret).into_bytes());
    all.push(hex::encode_upper(secret).into_bytes());
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    all.push(secret.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect());
    all.push(secret.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect());
    for upper in [true, false] {
        let code = |byte: u8| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        all.push(
            secret
                .iter()
                .flat_map(|byte| if unreserved(*byte) { vec![*byte] } else { code(*byte).into_bytes() })
                .collect(),
        );
    }
    if let Ok(text) = std::str::from_utf8(secret) {
        let json = serde_json::Value::from(text).to_string();
        let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or(&json).to_owned();
        all.push(json.replace('/', "\\/").into_bytes());
        all.push(json.into_bytes());
        let html = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        all.push(html.replace('\'', "&#39;").into_bytes());
        all.push(html.into_bytes());
    }
    // The secret may begin at any of three positions of a Base64 group. The characters at the edges depend on what stands beside it and are
    // left out of the search.
    for before in 0..3_usize {
        let padded = Zeroizing::new([vec![0; before], secret.to_vec()].concat());
        let first = (before * 8).div_ceil(6);
        let last = (before + secret.len()) * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&*padded), URL_SAFE_NO_PAD.encode(&*padded)] {
            all.extend(encoded.as_bytes().get(first..last).map(<[u8]>::to_vec));
        }
    }
    all.into_iter().filter(|needle| needle.len() >= 4).map(Zeroizing::new).collect()
}

/// Searches a stream.
pub(crate) struct Scanner {
    needles: Arc<Needles>,
    held: Zeroizing<Vec<u8>>,
    found: u64,
}

impl Scanner {
    pub(crate) fn new(needles: Arc<Needles>) -> Self {
        Self { needles, held: Zeroizing::default(), found: 0 }
    }

    /// Takes what came and gives what may go on.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Bytes {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(chunk);
        self.found += self.needles.mask(&mut text);
        let undecided = self.needles.undecided(&text);
        let safe = text.len() - undecided;
        self.held = Zeroizing::new(text.get(safe..).unwrap_or_default().to_vec());
        text.truncate(safe);
        Bytes::from(std::mem::take(&mut *text))
    }

    /// What was held back when the stream ends: it became no match.
    pub(crate) fn finish(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut *self.held))
    }

    /// Matches since the last question.
    pub(crate) fn take_found(&mut self) -> u64 {
        std::mem::take(&mut self.found)
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
