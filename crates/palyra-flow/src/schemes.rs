//! Schemes of addresses that a client follows, however they are written.
//!
//! A browser needs no `//` after `http:`, takes backslashes for slashes, and drops tabs and line ends out of the middle of an address. Other schemes open another
//! program: a telephone, a mail client, a wallet, a file share. What is followed anywhere is an address here; a word before a colon is not.

/// Longest scheme that is looked for.
const MAX_SCHEME: usize = 32;

/// The schemes whose addresses have a host with or without `//`.
const WEB: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "ftps"];

/// Schemes that lead somewhere with anything behind them.
const OPENING: [&str; 22] = [
    "afp",
    "android-app",
    "callto",
    "cifs",
    "facetime",
    "facetime-audio",
    "filesystem",
    "javascript",
    "livescript",
    "mailto",
    "mhtml",
    "nfs",
    "search-ms",
    "sftp",
    "smb",
    "smsto",
    "telnet",
    "vbscript",
    "view-source",
    "webcal",
    "whatsapp",
    "wtai",
];

/// Schemes that are words of a language, too: what follows has to be a number, an account or a query.
const NAMING: [&str; 22] = [
    "bitcoin",
    "bitcoincash",
    "blob",
    "dogecoin",
    "ethereum",
    "feed",
    "geo",
    "intent",
    "lightning",
    "litecoin",
    "magnet",
    "mms",
    "monero",
    "sip",
    "sips",
    "skype",
    "sms",
    "solana",
    "tel",
    "tg",
    "tron",
    "xmpp",
];

/// How schemes begin that programs make up for themselves.
const OWN: [&str; 4] = ["x-", "ms-", "web+", "itms"];

/// Schemes that a browser recognises with tabs or line ends inside of them.
const SPLIT: [&str; 7] = ["https", "http", "wss", "ws", "ftp", "file", "javascript"];

/// Whether an address begins in a token, in lower case.
pub(crate) fn leads_somewhere(lower: &str) -> bool {
    found(lower).is_some()
}

/// An address of the web that is written without `//`, or with backslashes, as a browser reads it.
pub(crate) fn normalised(token: &str) -> Option<String> {
    let lower = token.to_ascii_lowercase();
    let (start, colon) = found(&lower)?;
    let scheme = lower.get(start..colon).filter(|scheme| WEB.contains(scheme))?;
    let rest = token.get(colon + 1..)?;
    let bare = rest.trim_start_matches(['/', '\\']);
    (rest.len() - bare.len() != 2 || rest.starts_with('\\') || rest.starts_with("/\\"))
        .then(|| format!("{scheme}://{}", bare.replace('\\', "/")))
}

/// Where the first scheme of a token begins, and its colon.
fn found(lower: &str) -> Option<(usize, usize)> {
    memchr::memchr_iter(b':', lower.as_bytes()).find_map(|colon| {
        let start = scheme_start(lower, colon)?;
        let (scheme, rest) = (lower.get(start..colon)?, lower.get(colon + 1..)?);
        opens(scheme, rest).then_some((start, colon))
    })
}

/// Where the scheme begins that ends at a colon.
fn scheme_start(text: &str, colon: usize) -> Option<usize> {
    let before = text.as_bytes().get(..colon)?;
    let length = before.iter().rev().take(MAX_SCHEME).take_while(|byte| is_scheme(**byte)).count();
    let start = colon - length;
    // A scheme begins with a letter; a number before it belongs to something else.
    let letters = before.get(start..)?.iter().position(u8::is_ascii_alphabetic)?;
    (colon - start - letters >= 2).then_some(start + letters)
}

const fn is_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Whether a scheme with this behind it leads somewhere.
fn opens(scheme: &str, rest: &str) -> bool {
    let has = |wanted: fn(char) -> bool| rest.chars().any(wanted);
    if WEB.contains(&scheme) || OPENING.contains(&scheme) {
        return has(char::is_alphanumeric);
    }
    if NAMING.contains(&scheme) {
        return has(|letter| letter.is_ascii_digit() || "@?/\\#".contains(letter));
    }
    match scheme {
        // `data:` without a media type is plain text, which leads nowhere; see `in_link_position` for `data:,` and `data:;`.
        "data" => rest.contains('/'),
        // Without a slash there is no host in it; `file:line` is how places in sources are written.
        "file" => has(|letter| "./\\%|~".contains(letter)),
        // An axis of a diagram is no scheme.
        "x-axis" => false,
        _ => {
            let of_a_program = OWN.iter().any(|own| scheme.len() > own.len() && scheme.starts_with(own));
            of_a_program && rest.starts_with(|letter: char| letter.is_alphanumeric() || "/\\?".contains(letter))
        }
    }
}

/// The addresses that only their place makes one: any scheme where Markdown or HTML has a link, and schemes with tabs or line ends inside.
pub(crate) fn in_link_position(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for colon in memchr::memchr_iter(b':', text.as_bytes()) {
        found.extend(split_scheme(text, colon));
        let Some(start) = scheme_start(text, colon) else { continue };
        let (scheme, rest) = (text.get(start..colon).unwrap_or_default(), text.get(colon + 1..).unwrap_or_default());
        let is_data = scheme.eq_ignore_ascii_case("data") && rest.starts_with([',', ';']);
        if is_data || is_link(text.get(..start).unwrap_or_default(), rest) {
            let end = rest.find(|letter: char| letter.is_whitespace() || "<>\"'`)".contains(letter));
            let length = end.unwrap_or(rest.len());
            found.extend(text.get(start..colon + 1 + length).filter(|_| length > 0).map(str::to_owned));
        }
    }
    found
}

/// Attributes of HTML that hold an address.
const ATTRIBUTES: [&str; 8] = ["href", "src", "action", "cite", "poster", "background", "srcset", "url"];

/// Whether a scheme that stands behind `before` is that of a link, whichever it is.
fn is_link(before: &str, rest: &str) -> bool {
    // `Vec<std::fmt>` and a type behind a name are code.
    if rest.starts_with(|letter: char| letter == ':' || letter.is_whitespace()) {
        return false;
    }
    if before.ends_with('<') {
        // `<scheme:anything>` without a space is a link in Markdown; `<xs:element>` is an element of XML.
        let end = rest.find(|letter: char| letter.is_whitespace() || "<>".contains(letter)).unwrap_or(rest.len());
        let inside = rest.get(..end).unwrap_or_default();
        let is_name = inside.chars().all(|letter| letter.is_alphanumeric() || "_-./".contains(letter));
        let closes = rest.get(end..).is_some_and(|after| after.starts_with('>'));
        if closes && !is_name {
            return true;
        }
    }
    let place = before.trim_end_matches(['<', '"', '\'', ' ', '\t']);
    if place.ends_with("](") {
        return true;
    }
    if let Some(label) = place.strip_suffix("]:") {
        let line = label.rsplit('\n').next().unwrap_or_default().trim_start();
        return line.starts_with('[') && !line.trim_start_matches('[').contains(['[', ']']);
    }
    let attribute = place.strip_suffix('=').map(str::trim_end).unwrap_or_default();
    ATTRIBUTES.iter().any(|name| {
        let start = attribute.len().checked_sub(name.len());
        start.and_then(|start| attribute.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(name))
    })
}

/// An address whose scheme, or the slashes behind it, tabs or line ends tear apart: a browser drops them.
fn split_scheme(text: &str, colon: usize) -> Option<String> {
    let is_dropped = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r');
    let before = text.as_bytes().get(..colon)?;
    // Only letters of schemes and what is dropped, from the last on.
    let window =
        before.iter().rev().take(MAX_SCHEME).take_while(|byte| byte.is_ascii_alphabetic() || is_dropped(**byte));
    let window: Vec<u8> = window.copied().collect();
    let letters: Vec<(usize, u8)> = window.iter().copied().enumerate().filter(|(_, byte)| !is_dropped(*byte)).collect();
    let scheme = SPLIT.iter().find(|scheme| {
        let ends = letters
            .iter()
            .zip(scheme.bytes().rev())
            .filter(|((_, left), right)| left.eq_ignore_ascii_case(right))
            .count();
        ends == scheme.len()
    })?;
    let (first, _) = letters.get(scheme.len() - 1)?;
    // The letter before is one of another word.
    let is_whole = window.get(first + 1).is_none_or(|byte| is_dropped(*byte));
    let torn = first + 1 > scheme.len();
    let rest = text.get(colon + 1..)?;
    let after = rest.trim_start_matches(['\t', '\n', '\r', '/', '\\']);
    let between = rest.get(..rest.len() - after.len())?;
    let has_slash = between.contains(['/', '\\']);
    let is_apart = between.bytes().any(is_dropped);
    let goes_on = after.starts_with(char::is_alphanumeric);
    let follows = match *scheme {
        "javascript" => torn && goes_on,
        _ => (torn || is_apart) && has_slash && goes_on,
    };
    if !(is_whole && follows) {
        return None;
    }
    let end = after.find(|letter: char| letter == ' ' || "<>\"'`)".contains(letter)).unwrap_or(after.len());
    let path: String = after.get(..end)?.chars().filter(|letter| !"\t\n\r".contains(*letter)).collect();
    let marks = if *scheme == "javascript" { ":" } else { "://" };
    Some(format!("{scheme}{marks}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_lead_somewhere_with_and_without_slashes() {
        for address in [
            "http:evil.example/?d=1",
            "https:/evil.example",
            "https:\\\\evil.example",
            "wss:evil.example",
            "see:http:evil.example",
            "url=ftp:evil.example",
            "javascript:alert",
            "data:text/html",
            "file:///etc/passwd",
            "file:\\\\host\\share",
            "smb:host",
            "tel:112",
            "sms:+49301234",
            "mailto:eve",
            "x-evil:payload",
            "ms-word:ofe",
            "web+evil:x",
            "bitcoin:175tWpb8k1s7nmh4zx6rewf9wqrcz65a",
            "magnet:?xt=urn",
        ] {
            assert!(leads_somewhere(address), "{address}");
        }
        for word in [
            "std::fmt",
            "12:30",
            "key:value",
            "localhost:8080",
            "note:this",
            "file:line",
            "data:foo",
            "tel:",
            "http:",
            "https:/",
            "x-axis:time",
            "a:b",
            "feed:me",
            "xhttp:evil",
            "x:y",
            "geo:here",
            "1http:",
        ] {
            assert!(!leads_somewhere(word), "{word}");
        }
    }

    #[test]
    fn an_address_without_slashes_is_read_as_a_browser_reads_it() {
        let read = |token: &str| normalised(token);
        assert_eq!(read("http:evil.example/?d=A").as_deref(), Some("http://evil.example/?d=A"));
        assert_eq!(read("HTTPS:\\\\evil.example\\x").as_deref(), Some("https://evil.example/x"));
        assert_eq!(read("see:https:///evil.example").as_deref(), Some("https://evil.example"));
        assert_eq!(read("https://evil.example"), None, "it is one already");
        assert_eq!(read("tel:112"), None);
    }

    #[test]
    fn a_link_of_markdown_or_html_has_any_scheme() {
        for (text, link) in [
            ("[here](evil:now)", "evil:now"),
            ("[here]( <evil:now> )", "evil:now"),
            ("text\n[1]: evil:now", "evil:now"),
            ("<evil:a?b=c>", "evil:a?b=c"),
            ("<a href = \"evil:now\">", "evil:now"),
            ("see data:,hello", "data:,hello"),
            ("ht\ntps://evil.example/x y", "https://evil.example/x"),
            ("https:\n//evil.example", "https://evil.example"),
            ("java\tscript:alert(1)", "javascript:alert(1"),
        ] {
            assert_eq!(in_link_position(text), [link], "{text:?}");
        }
        for none in [
            "Vec<std::string::String>",
            "<xs:element>",
            "list[0]: foo:bar",
            "time: 12:30",
            "the following\nhttp: a protocol",
            "https:\nfoo",
            "x = a:b",
            "[x]: see below",
            "{\"url\": \"x\"}",
        ] {
            assert!(in_link_position(none).is_empty(), "{none:?}: {:?}", in_link_position(none));
        }
    }
}
