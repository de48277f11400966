//! Text a reader does not see: tags, direction overrides, strings of zero-width characters; and images that carry data away.

use crate::findings::{FindingKind, Span};
use crate::normalise::{is_bidi_control, is_invisible, tag_to_ascii};

/// Joiners are ordinary in some scripts and in emoji; so many in a row are not.
const MIN_RUN: usize = 4;

/// Name and weight of each kind of hidden text.
const TAG_CHARACTERS: (&str, u8) = ("tag_characters", 40);
const DIRECTION_CONTROLS: (&str, u8) = ("direction_controls", 20);
const INVISIBLE_CHARACTERS: (&str, u8) = ("invisible_characters", 25);

/// One structural signal.
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    pub(crate) kind: FindingKind,
    pub(crate) name: &'static str,
    pub(crate) weight: u8,
    pub(crate) span: Span,
}

/// Invisible material in a text; one signal per run.
pub(crate) fn invisible_runs(text: &str, each: &mut dyn FnMut(Signal)) {
    let mut run: Option<(usize, usize, usize, usize)> = None;
    let mut close = |run: Option<(usize, usize, usize, usize)>, end: usize| {
        let Some((start, count, tags, bidi)) = run else { return };
        let (name, weight) = match (tags, bidi) {
            (MIN_RUN.., _) => TAG_CHARACTERS,
            (_, 1..) => DIRECTION_CONTROLS,
            _ if count >= MIN_RUN => INVISIBLE_CHARACTERS,
            _ => return,
        };
        each(Signal { kind: FindingKind::HiddenText, name, weight, span: Span::new(start, end) });
    };
    for (at, c) in text.char_indices() {
        if c.is_ascii() || !is_invisible(c) {
            close(run.take(), at);
            continue;
        }
        let (start, count, tags, bidi) = run.unwrap_or((at, 0, 0, 0));
        // Left-to-right and right-to-left marks are part of ordinary Hebrew and Arabic; overrides and embeddings are not.
        let overrides = is_bidi_control(c) && !matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}');
        run = Some((start, count + 1, tags + usize::from(tag_to_ascii(c).is_some()), bidi + usize::from(overrides)));
    }
    close(run, text.len());
}

/// Markdown images and HTML images whose address carries a query: showing them sends it.
pub(crate) fn carrying_images(text: &[u8], each: &mut dyn FnMut(Signal)) {
    for at in memchr::memmem::find_iter(text, b"![") {
        let window = text.get(at..text.len().min(at + 512)).unwrap_or_default();
        let Some(open) = memchr::memmem::find(window, b"](http") else { continue };
        let address = window.get(open..).unwrap_or_default();
        let end = memchr::memchr(b')', address).unwrap_or(address.len());
        let address = address.get(..end).unwrap_or_default();
        if memchr::memchr(b'?', address)
            .is_some_and(|query| memchr::memchr(b'=', address.get(query..).unwrap_or_default()).is_some())
        {
            each(Signal {
                kind: FindingKind::Exfiltration,
                name: "image_with_query",
                weight: 20,
                span: Span::new(at, at + open + end),
            });
        }
    }
}
