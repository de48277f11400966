//! Finding a secret again in what a host answers.
//!
//! An echo server, an error page or a debug header may hand back what was sent to it. Answers of hosts that secrets are bound to are searched, as
//! they stream, for each secret as it is or with any of its characters escaped (`palyra_common::escaped`), in Base64 at every alignment, in hex and in UTF-16;
//! what is found is overwritten with asterisks of the same length, so that lengths announced before stay true. Only as much is held back as could
//! still become a match, so an answer that trickles is not delayed.
//!
//! Not covered: a host that transforms the secret in another way on purpose. Such a host was given the secret.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use memchr::memmem;
use palyra_common::SecretString;
use palyra_common::escaped::{Escaped, Found};
use zeroize::Zeroizing;

/// Every text that would give a secret away.
#[derive(Default)]
pub(crate) struct Needles {
    /// Encodings of whole secrets, byte for byte.
    encoded: Vec<Zeroizing<Vec<u8>>>,
    /// The secrets themselves, in whatever way their characters are spelled.
    spelled: Vec<Escaped>,
}

/// Whether more may follow what is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is the whole text.
    Final,
    /// The rest is on its way.
    Open,
}

impl Needles {
    pub(crate) fn of(secrets: &[SecretString]) -> Self {
        let mut needles = Self::default();
        for secret in secrets {
            needles.spelled.push(Escaped::new(secret.expose()));
            for needle in encodings(secret.expose()) {
                if !needles.encoded.contains(&needle) {
                    needles.encoded.push(needle);
                }
            }
        }
        needles
    }

    /// Overwrites every match. Says how many there were, and how many bytes at the end could be the start of another.
    fn mask(&self, text: &mut [u8], end: End) -> (u64, usize) {
        let mut found = 0;
        for needle in &self.encoded {
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
        let mut undecided = if end == End::Open { self.undecided(text) } else { 0 };
        for secret in &self.spelled {
            let mut at = 0;
            while let Some(start) = secret.candidate(text, at) {
                at = start;
                match secret.find_at(text.get(at..).unwrap_or_default()) {
                    Found::Whole(length) => {
                        if let Some(range) = text.get_mut(at..at + length) {
                            range.fill(b'*');
                        }
                        found += 1;
                        at += length.max(1);
                    }
                    Found::Start if end == End::Open => {
                        undecided = undecided.max(text.len() - at);
                        break;
                    }
                    Found::Start | Found::Nothing => at += 1,
                }
            }
        }
        (found, undecided)
    }

    /// How many bytes at the end of `text` could be the start of an encoded secret.
    fn undecided(&self, text: &[u8]) -> usize {
        let longest = |needle: &Zeroizing<Vec<u8>>| {
            let most = text.len().min(needle.len().saturating_sub(1));
            (1..=most).rev().find(|length| needle.get(..*length).is_some_and(|front| text.ends_with(front)))
        };
        self.encoded.iter().filter_map(longest).max().unwrap_or(0)
    }

    /// Masks a whole text, such as a header.
    pub(crate) fn mask_whole(&self, text: &[u8]) -> Option<(Vec<u8>, u64)> {
        let mut copy = text.to_vec();
        let (found, _) = self.mask(&mut copy, End::Final);
        (found > 0).then_some((copy, found))
    }
}

fn encodings(secret: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let bytes = secret.as_bytes();
    let mut all: Vec<Vec<u8>> = vec![hex::encode(bytes).into_bytes(), hex::encode_upper(bytes).into_bytes()];
    all.push(secret.encode_utf16().flat_map(u16::to_le_bytes).collect());
    all.push(secret.encode_utf16().flat_map(u16::to_be_bytes).collect());
    // The secret may begin at any of three positions of a Base64 group. The characters at the edges depend on what stands beside it and are
    // left out of the search.
    for before in 0..3_usize {
        let padded = Zeroizing::new([vec![0; before], bytes.to_vec()].concat());
        let first = (before * 8).div_ceil(6);
        let last = (before + bytes.len()) * 8 / 6;
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
        let (found, undecided) = self.needles.mask(&mut text, End::Open);
        self.found += found;
        let safe = text.len() - undecided;
        self.held = Zeroizing::new(text.get(safe..).unwrap_or_default().to_vec());
        text.truncate(safe);
        Bytes::from(std::mem::take(&mut *text))
    }

    /// What was held back when the stream ends. What began there became no match, but another match may lie behind it.
    pub(crate) fn finish(&mut self) -> Bytes {
        let mut text = std::mem::take(&mut self.held);
        self.found += self.needles.mask(&mut text, End::Final).0;
        Bytes::from(std::mem::take(&mut *text))
    }

    /// Matches since the last question.
    pub(crate) fn take_found(&mut self) -> u64 {
        std::mem::take(&mut self.found)
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
