//! The size of a picture in pixels, from the first bytes of a PNG, GIF, WebP or JPEG file. Anything else has no size here.

/// Width and height.
pub(super) fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = png(bytes).or_else(|| gif(bytes)).or_else(|| webp(bytes)).or_else(|| jpeg(bytes))?;
    (size.0 > 0 && size.1 > 0).then_some(size)
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    (rest.get(4..8)? == b"IHDR").then_some(())?;
    Some((u32::from_be_bytes(array(rest, 8)?), u32::from_be_bytes(array(rest, 12)?)))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")).then_some(())?;
    Some((u16::from_le_bytes(array(bytes, 6)?).into(), u16::from_le_bytes(array(bytes, 8)?).into()))
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP").then_some(())?;
    match bytes.get(12..16)? {
        b"VP8 " => {
            let side = |at| Some(u32::from(u16::from_le_bytes(array(bytes, at)?) & 0x3FFF));
            Some((side(26)?, side(28)?))
        }
        b"VP8L" => {
            let bits = u32::from_le_bytes(array(bytes, 21)?);
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8X" => {
            let side = |at| {
                let [low, mid, high]: [u8; 3] = array(bytes, at)?;
                Some(u32::from_le_bytes([low, mid, high, 0]) + 1)
            };
            Some((side(24)?, side(27)?))
        }
        _ => None,
    }
}

/// Goes from segment to segment until the frame that states the size.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    bytes.starts_with(b"\xFF\xD8").then_some(())?;
    let mut at = 2_usize;
    loop {
        let [mark, kind]: [u8; 2] = array(bytes, at)?;
        if mark != 0xFF {
            return None;
        }
        match kind {
            0xFF => at += 1, // Padding.
            // Start of frame, all kinds; C4, C8 and CC are tables.
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                let (height, width) =
                    (u16::from_be_bytes(array(bytes, at + 5)?), u16::from_be_bytes(array(bytes, at + 7)?));
                return Some((width.into(), height.into()));
            }
            0x01 | 0xD0..=0xD8 => at += 2, // Marks without contents.
            0xD9 | 0xDA => return None,    // The picture itself, or its end.
            _ => {
                let length = usize::from(u16::from_be_bytes(array(bytes, at + 2)?));
                at = at.checked_add(2 + length.max(2))?;
            }
        }
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_format_states_its_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08";
        let gif = b"GIF89a\x80\x02\xe0\x01\x00";
        let jpeg = b"\xFF\xD8\xFF\xE0\x00\x04ab\xFF\xFF\xC4\x00\x03x\xFF\xC2\x00\x11\x08\x01\xe0\x02\x80\x03";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        let bits: u32 = 639 | 479 << 14;
        let lossless = [b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f".as_slice(), &bits.to_le_bytes()].concat();
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        for bytes in [png.as_slice(), gif, jpeg, lossy, &lossless, extended] {
            assert_eq!(image_size(bytes), Some((640, 480)), "{bytes:?}");
        }
    }

    #[test]
    fn what_states_no_size_has_none() {
        for bytes in
            [b"".as_slice(), b"GIF89a\0\0\0\0\0", b"\xFF\xD8\xFF\xDA", b"RIFF\0\0\0\0WEBPABCD", b"\x89PNG\r\n\x1a\n"]
        {
            assert_eq!(image_size(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(start in prop::sample::select(vec![b"\xFF\xD8".to_vec(), b"GIF89a".to_vec(), b"RIFF0000WEBPVP8X".to_vec(), vec![]]),
                                rest in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = image_size(&[start, rest].concat());
        }
    }
}
