//! Layers: views of a text with one encoding after another taken off, to a bounded depth and size.
//!
//! Each decoder proposes the runs it can decode; a decoded run becomes a view of its own. Decoders never make text longer, and
//! a [`Budget`] caps the total, so a hostile text costs a small multiple of its length.

use std::borrow::Cow;

use palyra_common::runtime_contract_enum;

use super::span_map::SpanMap;
use super::{base, escapes, fold_bytes};
use crate::findings::{Coverage, Span};

/// How many layers are taken off. Nobody wraps five times by accident; who does so is reported as partly covered.
pub const MAX_LAYERS: usize = 4;

/// Decoded bytes per input byte, over all views together, before a scan gives up on going deeper.
const DECODED_PER_BYTE: usize = 8;

/// Decoded bytes granted to any text, so that short texts can use their full depth.
const DECODED_FLOOR: usize = 64 * 1024;

runtime_contract_enum! {
    /// One encoding that was taken off.
    pub enum Layer("safety_layer") {
        /// Unicode disguises: invisible characters, compatibility forms, look-alikes.
        Unicode = "unicode",
        /// Base64, standard or URL-safe alphabet, at any alignment.
        Base64 = "base64",
        /// Hexadecimal digits.
        Hex = "hex",
        /// Percent encoding of URLs.
        Percent = "percent",
        /// HTML character references.
        HtmlEntity = "html_entity",
        /// Backslash escapes of JSON and program sources.
        Backslash = "backslash",
    }
}

/// What may still be decoded.
#[derive(Debug)]
pub(crate) struct Budget {
    remaining: usize,
    coverage: Coverage,
}

impl Budget {
    pub(crate) const fn for_input(len: usize) -> Self {
        Self {
            remaining: len.saturating_mul(DECODED_PER_BYTE).saturating_add(DECODED_FLOOR),
            coverage: Coverage::Complete,
        }
    }

    /// Takes `len` bytes, or notes that something stays unseen.
    pub(crate) fn take(&mut self, len: usize) -> Option<()> {
        match self.remaining.checked_sub(len) {
            Some(rest) => {
                self.remaining = rest;
                Some(())
            }
            None => {
                self.exceeded();
                None
            }
        }
    }

    pub(crate) const fn exceeded(&mut self) {
        self.coverage = Coverage::Partial;
    }

    pub(crate) const fn coverage(&self) -> Coverage {
        self.coverage
    }
}

/// The first byte whose meaning depends on text that has not arrived yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenFrom(usize);

impl OpenFrom {
    pub(crate) const NOTHING: Self = Self(usize::MAX);

    pub(crate) fn note(&mut self, at: usize) {
        self.0 = self.0.min(at);
    }

    pub(crate) const fn get(self) -> usize {
        self.0
    }
}

/// Hands every decodable run of `bytes`, decoded once, to `each`.
pub(crate) fn unwrap_once(bytes: &[u8], open: &mut OpenFrom, each: &mut dyn FnMut(Layer, Vec<u8>, SpanMap)) {
    base::decode_runs(bytes, open, each);
    escapes::decode_words(bytes, each);
}

/// A text as it reads with some layers taken off.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The text of this view.
    pub bytes: Cow<'a, [u8]>,
    /// What was taken off, outermost first; empty for the text itself.
    pub layers: Vec<Layer>,
    maps: Vec<SpanMap>,
}

impl View<'_> {
    /// The range of the original text that a range of this view came from.
    #[must_use]
    pub fn to_original(&self, span: Span) -> Span {
        self.maps.iter().rev().fold(span, |span, map| map.to_original(span))
    }
}

/// The text itself and every view of it with up to [`MAX_LAYERS`] layers taken off.
#[must_use]
pub fn views(bytes: &[u8]) -> (Vec<View<'_>>, Coverage) {
    let mut budget = Budget::for_input(bytes.len());
    let mut done = vec![View { bytes: Cow::Borrowed(bytes), layers: Vec::new(), maps: Vec::new() }];
    let mut next = 0;
    while let Some(view) = done.get(next).cloned() {
        next += 1;
        let mut found: Vec<(Layer, Vec<u8>, SpanMap)> = Vec::new();
        if !view.bytes.is_ascii() {
            let (text, map) = fold_bytes(&view.bytes);
            if text.as_bytes() != &*view.bytes {
                found.push((Layer::Unicode, text.into_bytes(), map));
            }
        }
        unwrap_once(&view.bytes, &mut OpenFrom::NOTHING.clone(), &mut |layer, text, map| {
            found.push((layer, text, map));
        });
        for (layer, text, map) in found {
            if view.layers.len() >= MAX_LAYERS {
                budget.exceeded();
                break;
            }
            if budget.take(text.len()).is_none() {
                break;
            }
            let mut layers = view.layers.clone();
            layers.push(layer);
            let mut maps = view.maps.clone();
            maps.push(map);
            done.push(View { bytes: Cow::Owned(text), layers, maps });
        }
    }
    (done, budget.coverage())
}
