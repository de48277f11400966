//! Things in a text that lead somewhere: web addresses, mail addresses, bank accounts, wallets.
//!
//! Whoever follows them goes where the text says, so a link inside content is a destination of its own. Recognition works on several
//! readings of a text, because clients do: with full-width letters and zero-width characters undone, with character references of
//! HTML resolved, and with backslashes taken for slashes.

use std::borrow::Cow;

use memchr::memmem;
use palyra_safety::fold;

use crate::numbers::{self, NumberKind};
use crate::{references, schemes, wallets};

/// What kind of address it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// Unmistakable: a scheme, `www.`, a mail address, an account number.
    Explicit,
    /// Has the shape of a host name, which many file names have too.
    BareHost,
    /// The same, but its ending is one of files and no domain has it, so that no client follows it.
    FileName,
}

/// The addresses in a text, as they stand there, without surrounding punctuation. An address of the web that is written in another way than with `//` is
/// given as a browser reads it.
#[must_use]
pub fn links(text: &str) -> Vec<(String, LinkKind)> {
    let mut found = tokens(text);
    let mut add = |reading: &str, backslashes: Backslashes| {
        for link in tokens(reading) {
            // Words that backslashes join are no hosts: `src\main.rs` is a path, and `\n` a line end.
            let counts = backslashes == Backslashes::AsWritten || link.1 == LinkKind::Explicit;
            if counts && !found.contains(&link) {
                found.push(link);
            }
        }
    };
    let resolved = text.contains('&').then(|| references::resolved(text)).flatten();
    for base in [Some(text), resolved.as_deref()].into_iter().flatten() {
        let mut readings = vec![Cow::Borrowed(base)];
        if !base.is_ascii() {
            readings.push(fold(base).text);
            readings.push(Cow::Owned(fold(&parted(base)).text.into_owned()));
        }
        for reading in &readings {
            if *reading != text {
                add(reading, Backslashes::AsWritten);
            }
            if has_backslashed_slashes(reading) {
                add(&reading.replace('\\', "/"), Backslashes::AsSlashes);
            }
        }
    }
    found
}

/// How a reading takes backslashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backslashes {
    AsWritten,
    AsSlashes,
}

/// Whether a backslash stands where a slash of an address would.
fn has_backslashed_slashes(text: &str) -> bool {
    let pairs: [&[u8]; 4] = [b":\\", b"\\\\", b"\\/", b"/\\"];
    memchr::memchr(b'\\', text.as_bytes()).is_some()
        && pairs.iter().any(|pair| memmem::find(text.as_bytes(), pair).is_some())
}

/// The text with a space for each character that shows nothing: a client may end a word there. Full stops of other scripts part the labels of a host.
fn parted(text: &str) -> String {
    let letter = |letter: char| match letter {
        '\u{ad}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{feff}' => ' ',
        '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => '.',
        letter => letter,
    };
    text.chars().map(letter).collect()
}

fn tokens(text: &str) -> Vec<(String, LinkKind)> {
    let mut found = words(text);
    let mut add = |link: Cow<'_, str>| {
        if !found.iter().any(|(known, _)| *known == link) {
            found.push((link.into_owned(), LinkKind::Explicit));
        }
    };
    let numbers = numbers::numbers(text).into_iter().filter(|(_, kind)| *kind == NumberKind::International);
    numbers.filter_map(|(span, _)| text.get(span)).for_each(|number| add(number.into()));
    wallets::wallets(text).into_iter().for_each(|wallet| add(wallet.into()));
    schemes::in_link_position(text).into_iter().for_each(|link| add(link.into()));
    found
}

/// Whether a text as a whole is an address, one that has no typed form of its own included.
pub(crate) fn leads_somewhere(text: &str) -> bool {
    kind(text).is_some() || wallets::is_wallet(text)
}

/// The addresses that hold no space.
fn words(text: &str) -> Vec<(String, LinkKind)> {
    let mut found: Vec<(String, LinkKind)> = Vec::new();
    if text.is_ascii() {
        candidates(text).into_iter().for_each(|piece| consider(piece, &mut found));
    } else {
        // Spaces that are no ASCII are rare; whoever uses them gets the slow way.
        let other_space = |letter: char| !letter.is_ascii() && letter.is_whitespace();
        pieces(text).flat_map(|piece| piece.split(other_space)).for_each(|piece| consider(piece, &mut found));
    }
    found
}

/// The pieces of a plain text that may be addresses, in order. Most of a long text is neither near one of the marks of an address nor a word as long as
/// an account number, and is not looked at byte by byte.
fn candidates(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut end = 0;
    for at in memchr::memchr3_iter(b'.', b'@', b':', bytes) {
        if at >= end {
            let piece = piece_at(bytes, at);
            end = piece.1;
            found.push(piece);
        }
    }
    // A word of this length cannot lie between two looks that are this far apart.
    let mut at = SHORTEST_ACCOUNT - 1;
    while let Some(byte) = bytes.get(at) {
        if is_between(*byte) {
            at += SHORTEST_ACCOUNT;
        } else {
            let piece = piece_at(bytes, at);
            at = piece.1 + SHORTEST_ACCOUNT;
            if piece.1 - piece.0 >= SHORTEST_ACCOUNT {
                found.push(piece);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter_map(|(start, end)| text.get(start..end)).collect()
}

/// Fewest letters and digits of an account number.
const SHORTEST_ACCOUNT: usize = 15;

/// The piece around a byte that is not between pieces.
fn piece_at(bytes: &[u8], at: usize) -> (usize, usize) {
    let (before, after) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
    let inside = |byte: &&u8| !is_between(**byte);
    (at - before.iter().rev().take_while(inside).count(), at + after.iter().take_while(inside).count())
}

fn is_between(byte: u8) -> bool {
    BETWEEN.get(usize::from(byte)).copied().unwrap_or(false)
}

/// Takes a piece of text into the list if it is an address.
fn consider(piece: &str, found: &mut Vec<(String, LinkKind)>) {
    if !may_be_address(piece.as_bytes()) {
        return;
    }
    let token = piece.trim_matches(|letter: char| ".:!?*_~…«»„“”‘’".contains(letter));
    // Pages repeat their addresses, and looking for a known one is cheaper than judging it again.
    if !found.iter().any(|(known, _)| known == token)
        && let Some(kind) = kind(token)
    {
        let link = schemes::normalised(token).unwrap_or_else(|| token.to_owned());
        if !found.iter().any(|(known, _)| *known == link) {
            found.push((link, kind));
        }
        return;
    }
    // A word and a colon before an address, as in `see:example.org/x`, belong to the sentence.
    if let Some((word, rest)) = token.split_once(':')
        && !word.is_empty()
        && word.chars().all(char::is_alphabetic)
    {
        consider(rest, found);
    }
}

/// The text between spaces, quotes and brackets. Long texts pass through here byte by byte, so it looks each byte up in a table.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.bytes().position(|byte| BETWEEN.get(usize::from(byte)).copied().unwrap_or(false));
        let end = end.unwrap_or(rest.len());
        let piece = rest.get(..end).unwrap_or_default();
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(piece)
    })
}

/// The bytes that stand between words.
static BETWEEN: [bool; 128] = {
    let mut table = [false; 128];
    let marks = b" \t\n\r\x0b\x0c\"'`<>()[]{}|\\,;";
    let mut at = 0;
    while at < marks.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[marks[at] as usize] = true;
        }
        at += 1;
    }
    table
};

/// Most words are no addresses, and are told apart without copying them.
fn may_be_address(token: &[u8]) -> bool {
    let account = (SHORTEST_ACCOUNT..=40).contains(&token.len()) && token.iter().any(u8::is_ascii_digit);
    account || (token.len() >= 4 && memchr::memchr3(b'.', b'@', b':', token).is_some())
}

/// What kind of address a token is, if it is one.
pub(crate) fn kind(token: &str) -> Option<LinkKind> {
    if !may_be_address(token.as_bytes()) {
        return None;
    }
    let lower = token.to_ascii_lowercase();
    // A browser reads `//host` as an address of the scheme that the page has, and `\\host` alike; elsewhere the latter is a file share.
    if lower.starts_with(['/', '\\'])
        && let Some(rest) = lower.get(1..).and_then(|rest| rest.strip_prefix(['/', '\\']))
        && names_host(rest)
    {
        return Some(LinkKind::Explicit);
    }
    if lower.contains("://") || lower.starts_with("www.") || schemes::leads_somewhere(&lower) {
        return Some(LinkKind::Explicit);
    }
    if let Some((name, host)) = lower.rsplit_once('@')
        && !name.is_empty()
        && is_host(host)
    {
        return Some(LinkKind::Explicit);
    }
    if numbers::is_international(token) {
        return Some(LinkKind::Explicit);
    }
    let host = lower.split(['/', '?', '#', ':']).next().unwrap_or_default();
    // No file has a label of that form.
    let is_punycode = || host.split('.').any(|label| label.starts_with("xn--"));
    is_host(host).then(|| match is_punycode() {
        true => LinkKind::Explicit,
        // A path, a query or a port goes on from a host, not from a file.
        false if host.len() == lower.len() && has_file_ending(host) => LinkKind::FileName,
        false => LinkKind::BareHost,
    })
}

/// Endings of files that are no top-level domains. Those that are both (`md`, `rs`, `py`, `sh`, `zip`, …) are not among them: a client may follow `evil.md`.
const FILE_ENDINGS: [&str; 44] = [
    "bak", "bin", "cfg", "conf", "cpp", "css", "csv", "diff", "docx", "exe", "gif", "hpp", "htm", "html", "ini",
    "ipynb", "java", "jpeg", "jpg", "js", "json", "jsx", "lock", "log", "odt", "patch", "pdf", "php", "png", "pptx",
    "proto", "rb", "scss", "sql", "svg", "tex", "toml", "ts", "tsx", "txt", "wasm", "xlsx", "xml", "yaml",
];

fn has_file_ending(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| FILE_ENDINGS.contains(&ending))
}

/// Whether an address goes on with a host behind its slashes: a name or a number, with or without a user, a port and a dot at its end.
fn names_host(rest: &str) -> bool {
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let is_number = |host: &str| host.parse::<std::net::Ipv4Addr>().is_ok();
    // On a share the host stands before the `@`, elsewhere behind it.
    authority.split('@').any(|part| {
        let host = part.split(':').next().unwrap_or_default();
        is_host(host) || is_number(host) || unescaped(host).is_some_and(|host| is_host(&host) || is_number(&host))
    })
}

/// A host whose characters are escaped, as a browser reads it.
fn unescaped(host: &str) -> Option<String> {
    let (mut out, mut rest) = (Vec::new(), host);
    while let Some((before, after)) = rest.split_once('%') {
        out.extend_from_slice(before.as_bytes());
        out.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = after.get(2..)?;
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8(out).ok().filter(|plain| plain != host)
}

/// Labels of letters, digits and hyphens, at least two of them, the last one of letters or in Punycode. A dot may stand at the end.
fn is_host(host: &str) -> bool {
    let labels: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let plain = |label: &&str| {
        !label.is_empty() && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-' || letter == '_')
    };
    let is_top = |last: &&str| {
        last.len() >= 2 && last.chars().all(char::is_alphabetic) || last.len() > 4 && last.starts_with("xn--")
    };
    labels.len() >= 2 && labels.iter().all(plain) && labels.last().is_some_and(is_top)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    proptest! {
        /// Looking at candidates alone finds what looking at every piece finds.
        #[test]
        fn no_piece_is_missed(text in "([a-zA-Z0-9]{0,20}[ .:@,\"/{}-]{0,2}){0,40}") {
            let mut every = Vec::new();
            pieces(&text).for_each(|piece| consider(piece, &mut every));
            prop_assert_eq!(words(&text), every);
        }
    }

    fn found(text: &str) -> Vec<String> {
        links(text).into_iter().map(|(link, _)| link).collect()
    }

    #[test]
    fn addresses_are_found_without_their_punctuation() {
        assert_eq!(found("Look at www.example.org!"), ["www.example.org"]);
        assert_eq!(found("(see <https://a.example/x?y=1>)."), ["https://a.example/x?y=1"]);
        assert_eq!(found("mail ada@example.org, please"), ["ada@example.org"]);
        assert_eq!(found("pay GB29NWBK60161331926819 now"), ["GB29NWBK60161331926819"]);
        assert_eq!(found("pay GB29 NWBK 6016 1331 9268 19 now"), ["GB29 NWBK 6016 1331 9268 19"]);
        assert_eq!(found("call +49 30 1234567 or see //evil.example/x"), ["//evil.example/x", "+49 30 1234567"]);
        assert_eq!(found("see:evil.example/x and Pay:ada@example.org"), ["evil.example/x", "Pay:ada@example.org"]);
        assert!(found("src/lib.rs:3:4 Time:10.30 note:e.g. this").is_empty());
        assert!(found("Congrats on being the 1-th most active user! It is 12.30 already, e.g. today.").is_empty());
    }

    #[test]
    fn disguised_addresses_are_found_too() {
        assert!(found("ｗｗｗ．ｅｖｉｌ．ｅｘａｍｐｌｅ").iter().any(|link| link.contains("evil")));
        assert!(found("www.ev\u{200b}il.example").iter().any(|link| link == "www.evil.example"));
    }

    /// What a browser, a mail client or a Markdown program follows is an address, however it is written.
    #[test]
    fn what_a_client_follows_is_an_address() {
        for (text, link) in [
            ("http:evil.example/?d=1", "http://evil.example/?d=1"),
            ("https:/evil.example", "https://evil.example"),
            ("go to https:\\\\evil.example\\x now", "https://evil.example/x"),
            ("\\\\evil.example\\share", "//evil.example/share"),
            ("/\\evil.example/x", "//evil.example/x"),
            ("https&colon;&sol;&sol;evil&period;example", "https://evil.example"),
            ("&#104;&#x74;tps&#58;//evil&#46;example", "https://evil.example"),
            ("evil.xn--p1ai/x", "evil.xn--p1ai/x"),
            ("[more]: http:evil.example", "http://evil.example"),
            ("[more](evil-app:go)", "evil-app:go"),
            ("<evil-app:go?x=1>", "evil-app:go?x=1"),
            ("<http:evil.example>", "http://evil.example"),
            ("//evil.example/x", "//evil.example/x"),
            ("//user@evil.example:8080/x", "//user@evil.example:8080/x"),
            ("//203.0.113.7/x", "//203.0.113.7/x"),
            ("//evil%2eexample/x", "//evil%2eexample/x"),
            ("ftp:evil.example", "ftp://evil.example"),
            ("tel:112", "tel:112"),
            ("sms:+4930123?body=x", "sms:+4930123?body=x"),
            ("javascript:alert", "javascript:alert"),
            ("data:text/html", "data:text/html"),
            ("file:///etc/passwd", "file:///etc/passwd"),
            ("smb:host", "smb:host"),
            ("x-evil:run", "x-evil:run"),
            ("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
            ("to=1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
            ("0x52908400098527886E0F7030069857D2E4169EE7.", "0x52908400098527886E0F7030069857D2E4169EE7"),
            ("see\u{200b}www.evil.example", "www.evil.example"),
            ("see\u{2060}//evil\u{3002}example/x", "//evil.example/x"),
        ] {
            let all = links(text);
            assert!(all.contains(&(link.to_owned(), LinkKind::Explicit)), "{text:?}: {all:?}");
        }
        assert!(found("see\u{200b}evil.example/x").contains(&"evil.example/x".to_owned()), "a host between two words");
    }

    #[test]
    fn ordinary_text_is_no_address() {
        for text in [
            "main.rs:12:5",
            "README.md",
            "version 1.2.3, e.g. today at 12:30",
            "std::fmt::Display",
            "key:value",
            "C:\\Users\\ada\\notes.txt",
            "a line\\nanother",
            "\\section{x}",
            "AT&T; Q&A",
            "x && y",
            "HTTP/1.1 200",
            "file:line",
            "Vec<std::string::String>",
            "// a comment",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "fix: keep the order",
            "feat(http): add it",
            "https: or http:",
            "i.e. p.m. 10.5",
            "2026-03-01T10:00:00Z",
            "the ratio 1:2",
            "note:this",
            "list[0]: a:b",
        ] {
            let explicit: Vec<_> = links(text).into_iter().filter(|(_, kind)| *kind == LinkKind::Explicit).collect();
            assert!(explicit.is_empty(), "{text:?}: {explicit:?}");
        }
        for text in ["1.2.3", "e.g", "12:30", "v1.2.3-4", "10.5", "main"] {
            assert!(links(text).is_empty(), "{text:?}: {:?}", links(text));
        }
    }

    #[test]
    fn a_bare_host_is_told_from_an_explicit_address() {
        assert_eq!(kind("notes.txt"), Some(LinkKind::FileName));
        for host in ["README.md", "evil.example/x", "evil.txt/x", "evil.txt:443", "main.rs"] {
            assert_eq!(kind(host), Some(LinkKind::BareHost), "{host}");
        }
        assert_eq!(kind("www.notes.example"), Some(LinkKind::Explicit));
        assert_eq!(kind("1.2.3"), None);
    }
}
