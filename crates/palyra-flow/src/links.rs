//! Things in a text that lead somewhere: web addresses, mail addresses, bank accounts.
//!
//! Whoever follows them goes where the text says, so a link inside content is a destination of its own. Recognition works on folded text
//! as well, so that full-width letters or zero-width characters do not hide an address from the rule while a browser would still
//! follow it.

use palyra_safety::fold;

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
    let mut found: Vec<(String, LinkKind)> = Vec::new();
    for piece in text.split(|letter: char| letter.is_whitespace() || "\"'`<>()[]{}|\\,;".contains(letter)) {
        let token = piece.trim_matches(|letter: char| ".:!?*_~…«»„“”‘’".contains(letter));
        if let Some(kind) = kind(token)
            && !found.iter().any(|(known, _)| known == token)
        {
            found.push((token.to_owned(), kind));
        }
    }
    found
}

/// What kind of address a token is, if it is one.
pub(crate) fn kind(token: &str) -> Option<LinkKind> {
    // Most words are none of these, so they are told apart without copying them.
    let may_be_account = (15..=34).contains(&token.len()) && token.bytes().any(|byte| byte.is_ascii_digit());
    let may_be_address = token.len() >= 4 && token.bytes().any(|byte| matches!(byte, b'.' | b'@' | b':'));
    if !may_be_account && !may_be_address {
        return None;
    }
    let lower = token.to_ascii_lowercase();
    if lower.contains("://") || lower.starts_with("www.") || lower.starts_with("mailto:") {
        return Some(LinkKind::Explicit);
    }
    if let Some((name, host)) = lower.rsplit_once('@')
        && !name.is_empty()
        && is_host(host)
    {
        return Some(LinkKind::Explicit);
    }
    if is_account(&lower) {
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

/// An international bank account number: two letters, two digits, eleven to thirty letters and digits.
fn is_account(token: &str) -> bool {
    let bytes = token.as_bytes();
    (15..=34).contains(&bytes.len())
        && bytes.iter().take(2).all(u8::is_ascii_alphabetic)
        && bytes.iter().skip(2).take(2).all(u8::is_ascii_digit)
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes.iter().filter(|byte| byte.is_ascii_digit()).count() >= 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        links(text).into_iter().map(|(link, _)| link).collect()
    }

    #[test]
    fn addresses_are_found_without_their_punctuation() {
        assert_eq!(found("Look at www.example.org!"), ["www.example.org"]);
        assert_eq!(found("(see <https://a.example/x?y=1>)."), ["https://a.example/x?y=1"]);
        assert_eq!(found("mail ada@example.org, please"), ["ada@example.org"]);
        assert_eq!(found("pay GB29NWBK60161331926819 now"), ["GB29NWBK60161331926819"]);
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
