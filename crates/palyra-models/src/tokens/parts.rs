//! How many tokens a picture or a document is: an upper bound by what each vendor documents.
//!
//! Pictures cost by their size in pixels. A size that cannot be read counts as the largest that the vendor looks at. Documents cost per
//! page, text and picture of it together; documents that are text cost what their text costs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::family::TokenFamily;
use super::image_size::image_size;
use crate::part::{Part, PartKind};

/// Base64 characters that are looked at to find the size of a picture. Camera files can have half a megabyte before it.
const HEAD: usize = 1 << 20;
/// What one page of a PDF costs at most: Anthropic names up to 3,000 tokens of text, and a picture of the page.
const PER_PAGE: u64 = 3_000 + 4_784;
/// Bytes of a PDF without readable page marks that are taken for one page.
const BYTES_PER_PAGE: usize = 20_000;

/// What a part is to whoever counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PartTokens {
    /// At most so many tokens.
    AtMost(u64),
    /// As many tokens as this text.
    Text(String),
}

/// How many tokens this part is.
pub(super) fn part_tokens(family: TokenFamily, model: &str, part: &Part) -> PartTokens {
    match part.kind {
        PartKind::Image => PartTokens::AtMost(image_tokens(family, model, size_of(part))),
        PartKind::File if is_text(&part.media_type) => PartTokens::Text(match STANDARD.decode(part.data.as_bytes()) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => part.data.to_string(),
        }),
        PartKind::File => PartTokens::AtMost(document_tokens(&part.data)),
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type.starts_with("application/json") || media_type.ends_with("+json")
}

fn size_of(part: &Part) -> Option<(u32, u32)> {
    // Whole groups of four characters decode by themselves.
    let head = part.data.get(..part.data.len().min(HEAD) / 4 * 4)?;
    image_size(&STANDARD.decode(head).ok()?)
}

/// At most how many tokens a picture of this size is.
fn image_tokens(family: TokenFamily, model: &str, size: Option<(u32, u32)>) -> u64 {
    let (width, height) = size.map_or((u64::MAX, u64::MAX), |(width, height)| (u64::from(width), u64::from(height)));
    let tiles = |side: u64| width.div_ceil(side).saturating_mul(height.div_ceil(side));
    match family {
        TokenFamily::O200k | TokenFamily::Cl100k if model.contains("gpt-4o-mini") => {
            // 2,833 and 5,667 per tile of 512 pixels; scaled down to at most 8 tiles.
            2_833 + tiles(512).min(8) * 5_667
        }
        TokenFamily::O200k | TokenFamily::Cl100k => {
            // Either 85 and 170 per tile, or patches of 32 pixels: at most 1,536 of them times up to 2.46, or at most 10,000.
            let by_tile = 85 + tiles(512).min(8) * 170;
            by_tile.max(tiles(32).min(1_536) * 246 / 100).max(tiles(32).min(10_000))
        }
        // Width times height by 750, at most 2,576 pixels a side and 4,784 tokens.
        TokenFamily::Anthropic => width.saturating_mul(height).div_ceil(750).clamp(64, 4_784),
        // 258 per tile of 768 pixels; later models 2,240 whatever the size.
        TokenFamily::Gemini => (tiles(768).min(64) * 258).max(2_240),
        // Encoders of open models work with patches of 14 to 28 pixels, and scale down to some thousands of them.
        TokenFamily::Open | TokenFamily::Unknown => tiles(14).clamp(256, 16_384),
    }
}

/// At most how many tokens a document is.
fn document_tokens(data: &str) -> u64 {
    let bytes = STANDARD.decode(data).unwrap_or_default();
    let pages = bytes
        .windows(b"/Type".len())
        .enumerate()
        .filter(|(at, window)| *window == b"/Type" && is_page(bytes.get(at + window.len()..).unwrap_or_default()))
        .count();
    // Pages can hide in compressed parts, so the size gives a second bound.
    let pages = pages.max(data.len().div_ceil(BYTES_PER_PAGE)).max(1);
    u64::try_from(pages).unwrap_or(u64::MAX).saturating_mul(PER_PAGE)
}

/// Whether what follows `/Type` in a PDF is `/Page`, and not `/Pages`.
fn is_page(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    rest.strip_prefix(b"/Page").is_some_and(|after| !after.first().is_some_and(u8::is_ascii_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: PartKind, media_type: &str, bytes: &[u8]) -> Part {
        Part { kind, media_type: media_type.into(), name: None, data: STANDARD.encode(bytes).into() }
    }

    fn tokens(model: &str, part: &Part) -> u64 {
        match part_tokens(TokenFamily::of(model), model, part) {
            PartTokens::AtMost(tokens) => tokens,
            PartTokens::Text(text) => text.len() as u64,
        }
    }

    /// The beginning of a PNG of this size.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    #[test]
    fn pictures_cost_by_size_and_the_unknown_most() {
        for model in
            ["gpt-4o", "gpt-4o-mini", "gpt-5-mini", "claude-sonnet-4-5", "gemini-2.5-pro", "llama3.2-vision", "x"]
        {
            let small = tokens(model, &part(PartKind::Image, "image/png", &png(64, 64)));
            let large = tokens(model, &part(PartKind::Image, "image/png", &png(4_000, 4_000)));
            let unknown = tokens(model, &part(PartKind::Image, "image/png", b"no picture"));
            assert!(0 < small && small <= large && large <= unknown, "{model}: {small} {large} {unknown}");
            assert!(unknown < 100_000, "{model}: {unknown}");
        }
        // As documented: 1,000 by 1,000 pixels are about 1,334 tokens.
        assert_eq!(tokens("claude-sonnet-4-5", &part(PartKind::Image, "image/png", &png(1_000, 1_000))), 1_334);
    }

    #[test]
    fn documents_cost_per_page_and_texts_by_their_text() {
        let pdf = b"%PDF-1.4 <</Type /Pages>> <</Type/Page >> <</Type /Page/Parent 1>> <</Type /PageLabel>>";
        assert_eq!(tokens("gpt-5", &part(PartKind::File, "application/pdf", pdf)), 2 * PER_PAGE);
        assert_eq!(tokens("gpt-5", &part(PartKind::File, "application/pdf", &vec![0; 300_000])), 20 * PER_PAGE);
        assert_eq!(tokens("gpt-5", &part(PartKind::File, "text/plain", b"hello")), 5);
        let broken =
            Part { kind: PartKind::File, media_type: "text/plain".into(), name: None, data: "not base64!".into() };
        assert_eq!(tokens("gpt-5", &broken), 11);
    }
}
