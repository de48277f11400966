//! Things in a text that lead somewhere: web addresses, mail addresses, bank accounts.
//!
//! Whoever follows them goes where the text says, so a link inside content is a destination of its own. Recognition works on folded text
//! as well, so that full-width letters or zero-width characters do not hide an address from the rule while a browser would still
//! follow it.

use palyra_safety::fold;

use crate::numbers::{self, NumberKind};

/// What kind of address it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// Unmistakable: a scheme, `www.`, a mail address, an account number.
    Explicit,
    /// Has the shape of a host name, which a file name has too.
    BareHost,
}

/// The addresses in a text, as they stand there, without surrounding punctuation.
#[must_use]
pub fn links(text: &str) -> Vec<(String, LinkKind)> {
    let mut found = tokens(text);
    let folded = fold(text);
    if folded.text != text {
        for link in tokens(&folded.text) {
            if !found.contains(&link) {
                found.push(link);
            }
        }
    }
    found
}

fn tokens(text: &str) -> Vec<(String, LinkKind)> {
    let mut found = words(text);
    let numbers = numbers::numbers(text).into_iter().filter(|(_, kind)| *kind == NumberKind::International);
    for number in numbers.filter_map(|(span, _)| text.get(span)) {
        if !found.iter().any(|(known, _)| known == number) {
            found.push((number.to_owned(), LinkKind::Explicit));
        }
    }
    found
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
        found.push((token.to_owned(), kind));
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
    // A browser reads `//host` as an address of the scheme that the page has.
    if let Some(host) = lower.strip_prefix("//")
        && is_host(host.split(['/', '?', '#', ':']).next().unwrap_or_default())
    {
        return Some(LinkKind::Explicit);
    }
    if lower.contains("://") || lower.starts_with("www.") || lower.starts_with("mailto:") {
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
    is_host(host).then_some(LinkKind::BareHost)
}

/// Labels of letters, digits and hyphens, at least two of them, the last one of letters.
fn is_host(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let plain = |label: &&str| {
        !label.is_empty() && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-' || letter == '_')
    };
    labels.len() >= 2
        && labels.iter().all(plain)
        && labels.last().is_some_and(|last| last.len() >= 2 && last.chars().all(char::is_alphabetic))
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
        assert!(found("Congrats on being the 1-th most active user! It is 12.30 already, e.g. today.").is_empty());
    }

    #[test]
    fn disguised_addresses_are_found_too() {
        assert!(found("ｗｗｗ．ｅｖｉｌ．ｅｘａｍｐｌｅ").iter().any(|link| link.contains("evil")));
        assert!(found("www.ev\u{200b}il.example").iter().any(|link| link == "www.evil.example"));
    }

    #[test]
    fn a_bare_host_is_told_from_an_explicit_address() {
        assert_eq!(kind("notes.txt"), Some(LinkKind::BareHost));
        assert_eq!(kind("www.notes.example"), Some(LinkKind::Explicit));
        assert_eq!(kind("1.2.3"), None);
    }
}
