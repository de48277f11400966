//! Which images are taken.
//!
//! An image is what its first bytes say, never what its name says: a provider would refuse it otherwise, or do something else with it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_models::{Part, PartKind};

/// Most bytes of an image; what providers take has about this bound.
pub const MAX_IMAGE_BYTES: usize = 5 << 20;

/// Why an image is not taken.
pub(super) enum Refused {
    MediaType,
    Data,
    Size,
}

/// The media type of an image by its first bytes; nothing if it is none that is taken.
#[must_use]
pub fn image_media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// An image as messages carry it; nothing if it is none that is taken.
pub(crate) fn image_part(name: &str, bytes: &[u8]) -> Option<Part> {
    let media_type = image_media_type(bytes)?;
    let fits = bytes.len() <= MAX_IMAGE_BYTES;
    fits.then(|| Part {
        kind: PartKind::Image,
        media_type: media_type.to_owned(),
        name: Some(name.to_owned()),
        data: STANDARD.encode(bytes).into(),
    })
}

pub(super) fn check_image(part: &Part) -> Result<(), Refused> {
    // Longer than the largest image in base64: not worth decoding.
    if part.data.is_empty() || part.data.len() > MAX_IMAGE_BYTES.div_ceil(3) * 4 {
        return Err(Refused::Size);
    }
    let bytes = STANDARD.decode(part.data.as_bytes()).map_err(|_| Refused::Data)?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(Refused::Size);
    }
    if image_media_type(&bytes) == Some(part.media_type.as_str()) { Ok(()) } else { Err(Refused::MediaType) }
}
