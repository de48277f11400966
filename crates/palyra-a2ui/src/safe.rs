//! What is harmless: names, addresses of links and of pictures, characters.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::limits::MAX_IMAGE;

/// Whether a text is a plain name: 1 to 64 small letters, digits, `_` and `-`.
///
/// Ids, names of fields and values of options are plain names, so that nothing an agent wrote reads as a sentence of the person who submits.
#[must_use]
pub fn is_plain_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

/// The address of a link, if it may stand in a page: `http`, `https` and `mailto`, without credentials, spaces or control characters.
///
/// Browsers drop tabs and line breaks inside addresses and take backslashes for slashes, so an address with any of them is refused, not cleaned.
pub(crate) fn link(address: &str) -> Option<&str> {
    let fits = !address.is_empty()
        && address.len() <= 2_000
        && !address.chars().any(|c| c.is_control() || c.is_whitespace() || is_deceptive(c) || c == '\\');
    if !fits {
        return None;
    }
    let (scheme, rest) = address.split_once(':')?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => {
            let authority = rest.strip_prefix("//")?.split(['/', '?', '#']).next().unwrap_or_default();
            // `https://bank.example@evil.example` shows one host and leads to another.
            (!authority.is_empty() && !authority.contains('@')).then_some(address)
        }
        "mailto" => (!rest.is_empty()).then_some(address),
        _ => None,
    }
}

/// The raster types that a picture may have, with the bytes each begins with.
const PICTURES: [(&str, &[&[u8]]); 4] = [
    ("image/png", &[b"\x89PNG\r\n\x1a\n"]),
    ("image/jpeg", &[b"\xff\xd8\xff"]),
    ("image/gif", &[b"GIF87a", b"GIF89a"]),
    ("image/webp", &[b"RIFF"]),
];

/// Whether an address is a picture that comes with the document: `data:` with a raster type, and bytes that are of that type.
pub(crate) fn is_picture(address: &str) -> bool {
    let Some((media, encoded)) = address.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) else {
        return false;
    };
    let Some((_, beginnings)) = PICTURES.iter().find(|(name, _)| *name == media) else { return false };
    address.len() <= MAX_IMAGE
        && STANDARD.decode(encoded).is_ok_and(|bytes| beginnings.iter().any(|beginning| bytes.starts_with(beginning)))
}

/// Characters that make a text look like another: they turn the direction of what follows.
pub(crate) fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// A character as it is shown: whatever is neither text, line break nor tab becomes the sign for what cannot be shown.
pub(crate) fn shown(c: char) -> char {
    if (c.is_control() && c != '\n' && c != '\t') || is_deceptive(c) { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_links_pass() {
        for good in
            ["https://example.org/a?b=c#d", "http://127.0.0.1:8080", "mailto:a@example.org", "HTTPS://example.org"]
        {
            assert_eq!(link(good), Some(good));
        }
        for bad in [
            "",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\tscript:alert(1)",
            " javascript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "vbscript:x",
            "file:///etc/passwd",
            "//evil.example",
            "/relative",
            "https:/one-slash",
            "https://user@evil.example/",
            "https://bank.example@evil.example",
            "https:\\\\evil.example",
            "https://a.example/\u{202e}gpj.exe",
            "https://",
            "blob:https://example.org/x",
            "filesystem:https://example.org/x",
        ] {
            assert_eq!(link(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn pictures_are_what_they_say() {
        let png = format!("data:image/png;base64,{}", STANDARD.encode(b"\x89PNG\r\n\x1a\nrest"));
        assert!(is_picture(&png));
        for bad in [
            format!("data:image/svg+xml;base64,{}", STANDARD.encode(b"<svg onload=alert(1)>")),
            format!("data:image/png;base64,{}", STANDARD.encode(b"<svg onload=alert(1)>")),
            format!("data:text/html;base64,{}", STANDARD.encode(b"<script>")),
            png.replace("image/png", "image/jpeg"),
            png.replace(";base64,", ";charset=x;base64,"),
            "data:image/png,plain".to_owned(),
            "data:image/png;base64,***".to_owned(),
            "https://example.org/a.png".to_owned(),
            "http://example.org/a.png".to_owned(),
            String::new(),
        ] {
            assert!(!is_picture(&bad), "{bad}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert!(is_plain_name("a") && is_plain_name("first_name-2"));
        let long = "a".repeat(65);
        for bad in ["", "A", "a b", "a.b", "ä", "a\"b", "<a>", &long] {
            assert!(!is_plain_name(bad), "{bad:?}");
        }
    }
}
