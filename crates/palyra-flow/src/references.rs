//! Character references of HTML: what a page, a mail or Markdown shows instead of what is written.
//!
//! Only those are known by name that stand for what addresses are made of, or for what shows nothing. Letters are written by number.

/// How often references are undone: text passes through several programs.
const MAX_ROUNDS: usize = 3;
/// Longest reference that is looked for.
const MAX_LENGTH: usize = 24;

/// Names of characters, which are told apart by their case.
const NAMED: [(&str, char); 38] = [
    ("AMP", '&'),
    ("NewLine", '\n'),
    ("Tab", '\t'),
    ("ZeroWidthSpace", '\u{200b}'),
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dash", '\u{2010}'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("gt", '>'),
    ("GT", '>'),
    ("hyphen", '\u{2010}'),
    ("lbrack", '['),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("LT", '<'),
    ("nbsp", ' '),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrack", ']'),
    ("rpar", ')'),
    ("semi", ';'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// The text without its references; nothing if it has none.
pub(crate) fn resolved(text: &str) -> Option<String> {
    let mut resolved = once(text)?;
    for _ in 1..MAX_ROUNDS {
        match once(&resolved) {
            Some(next) => resolved = next,
            None => break,
        }
    }
    Some(resolved)
}

fn once(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut any = false;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        match reference(after) {
            Some((letter, length)) => {
                any = true;
                out.push(letter);
                rest = after.get(length..).unwrap_or_default();
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    any.then_some(out)
}

/// The character that a reference stands for, and how long it is behind its `&`.
fn reference(text: &str) -> Option<(char, usize)> {
    if let Some(number) = text.strip_prefix('#') {
        let (radix, digits) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (16, digits),
            None => (10, number),
        };
        let length = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
        // Zeros in front say nothing, however many.
        let value = u32::from_str_radix(digits.get(..length)?, radix).ok()?;
        let end = text.len() - digits.len() + length;
        // Browsers take it without its semicolon, too.
        let closed = usize::from(text.get(end..).is_some_and(|after| after.starts_with(';')));
        return Some((char::from_u32(value)?, end + closed));
    }
    let length = text.bytes().take(MAX_LENGTH).take_while(u8::is_ascii_alphabetic).count();
    let name = text.get(..length)?;
    text.get(length..).filter(|after| after.starts_with(';'))?;
    NAMED.iter().find(|(known, _)| *known == name).map(|(_, letter)| (*letter, length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_undone() {
        let read = |text: &str| resolved(text);
        assert_eq!(read("https&colon;&sol;&sol;evil&period;example").as_deref(), Some("https://evil.example"));
        assert_eq!(read("&#104;ttp&#58&#x2F;&#x0002f;x").as_deref(), Some("http://x"));
        assert_eq!(read("evil&amp;period;example").as_deref(), Some("evil.example"));
        for plain in ["AT&T", "a && b", "x&y;", "&#;", "&#xD800;", "&unknown;", "Q&A: 1"] {
            assert_eq!(read(plain), None, "{plain}");
        }
    }
}
