//! Normalisation: one plain view of a text, whatever it is dressed up as.
//!
//! [`fold`] undoes Unicode disguises, [`views`] also unwraps encodings. Both keep a [`SpanMap`], so that whatever is found in
//! a view can be pointed at, and cut out, in the original bytes. Which runs of text are worth decoding is decided in `base`
//! and `escapes`; what is then looked for is other modules' business.

mod base;
mod confusables;
mod escapes;
mod fold;
mod invisible;
mod layers;
mod span_map;

pub(crate) use base::decode_base64;
pub use fold::{Folded, fold};
pub(crate) use fold::{fold_bytes, fold_char};
pub(crate) use invisible::{is_bidi_control, is_invisible, tag_to_ascii};
pub(crate) use layers::{Budget, OpenFrom, unwrap_once};
pub use layers::{Layer, MAX_LAYERS, View, views};
pub use span_map::SpanMap;
