//! Finding a text that was escaped on its way: each character as it is, percent-encoded, as JSON or JavaScript escape, or as HTML entity.
//!
//! Encoders differ in which characters they escape, so every character may be spelled in any of these ways, whatever its neighbours are. Letters
//! are compared without regard to ASCII case: header names arrive in lower case, and some servers shout.

use std::collections::HashSet;
use std::fmt;

use zeroize::Zeroizing;

/// Longest escape that is recognised, such as `&lowbar;` or `&#x0000005f;`.
const LONGEST_ESCAPE: usize = 12;

/// What stands at one place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The text that was looked for, in so many bytes.
    Whole(usize),
    /// The start of it, cut off by the end of what there is.
    Start,
    /// Something else.
    Nothing,
}

/// A text to be found in any spelling. `Debug` does not show it.
pub struct Escaped {
    letters: Zeroizing<Vec<char>>,
    /// Which bytes a spelling can begin with.
    begins: [bool; 256],
}

impl fmt::Debug for Escaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Escaped")
    }
}

impl Escaped {
    /// Prepares the search for this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let letters: Zeroizing<Vec<char>> = Zeroizing::new(text.chars().collect());
        let mut begins = [false; 256];
        let mut buffer = [0; 4];
        let literal = letters.first().map(|first| first.encode_utf8(&mut buffer).as_bytes()).unwrap_or_default();
        let first = literal.first().into_iter().flat_map(|byte| [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]);
        for byte in first.chain(*b"%\\&+") {
            if let Some(slot) = begins.get_mut(usize::from(byte)) {
                *slot = true;
            }
        }
        Self { letters, begins }
    }

    /// The first place at or after `from` where a spelling can begin.
    #[must_use]
    pub fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let begins = |byte: &u8| self.begins.get(usize::from(*byte)).copied().unwrap_or(false);
        text.get(from..)?.iter().position(begins).map(|at| from + at)
    }

    /// Whether the text stands at the start of `rest`.
    #[must_use]
    pub fn find_at(&self, rest: &[u8]) -> Found {
        let mut cut_off = false;
        // A `%`, `&` or backslash may be meant literally or begin an escape, so there can be two ways on.
        let mut ways = vec![(0, 0)];
        // Two ways often meet again; following each of them from there on would double the work with every escape.
        let mut seen = HashSet::new();
        while let Some((at, index)) = ways.pop() {
            let Some(wanted) = self.letters.get(index) else { return Found::Whole(at) };
            let Some(here) = rest.get(at..).filter(|here| !here.is_empty()) else {
                cut_off = true;
                continue;
            };
            for spelling in [literal(*wanted, here), escape(*wanted, here)] {
                match spelling {
                    Found::Whole(length) => {
                        let next = (at + length, index + 1);
                        if seen.insert(next) {
                            ways.push(next);
                        }
                    }
                    Found::Start => cut_off = true,
                    Found::Nothing => {}
                }
            }
        }
        if cut_off { Found::Start } else { Found::Nothing }
    }
}

fn literal(wanted: char, here: &[u8]) -> Found {
    let mut buffer = [0; 4];
    prefix(wanted.encode_utf8(&mut buffer).as_bytes(), here)
}

/// Whether `here` begins with these bytes, without regard to ASCII case.
fn prefix(bytes: &[u8], here: &[u8]) -> Found {
    let length = bytes.len().min(here.len());
    let equal = bytes.iter().zip(here).all(|(left, right)| left.eq_ignore_ascii_case(right));
    match equal {
        true if length == bytes.len() => Found::Whole(length),
        true => Found::Start,
        false => Found::Nothing,
    }
}

fn escape(wanted: char, here: &[u8]) -> Found {
    match here.first() {
        Some(b'%') => percent(wanted, here),
        Some(b'\\') => backslash(wanted, here),
        Some(b'&') => entity(wanted, here),
        Some(b'+') if wanted == ' ' => Found::Whole(1),
        _ => Found::Nothing,
    }
}

fn percent(wanted: char, here: &[u8]) -> Found {
    let mut buffer = [0; 4];
    let codes: String = wanted.encode_utf8(&mut buffer).bytes().map(|byte| format!("%{byte:02x}")).collect();
    prefix(codes.as_bytes(), here)
}

fn backslash(wanted: char, here: &[u8]) -> Found {
    let mut units = [0; 2];
    let codes: String = wanted.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    let short = match wanted {
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        other => other,
    };
    let mut spellings = vec![codes, format!("\\u{{{:x}}}", u32::from(wanted))];
    if u32::from(wanted) <= 0xff {
        spellings.push(format!("\\x{:02x}", u32::from(wanted)));
    }
    if !short.is_alphanumeric() || short != wanted {
        spellings.push(format!("\\{short}"));
    }
    best(spellings.iter().map(|spelling| prefix(spelling.as_bytes(), here)))
}

/// `&#47;`, `&#x2f;` and `&sol;`, with any number of leading zeros that still fits.
fn entity(wanted: char, here: &[u8]) -> Found {
    let window = here.get(1..here.len().min(LONGEST_ESCAPE)).unwrap_or_default();
    let Some(end) = window.iter().position(|byte| *byte == b';') else {
        let open =
            here.len() < LONGEST_ESCAPE && window.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
        return if open { Found::Start } else { Found::Nothing };
    };
    let name = window.get(..end).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
    let code = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        },
        None => NAMED.iter().find(|(known, _)| *known == name).map(|(_, letter)| u32::from(*letter)),
    };
    let same = code.and_then(char::from_u32).is_some_and(|letter| letter.eq_ignore_ascii_case(&wanted));
    if same { Found::Whole(end + 2) } else { Found::Nothing }
}

fn best(all: impl Iterator<Item = Found>) -> Found {
    let mut best = Found::Nothing;
    for found in all {
        match found {
            Found::Whole(length) => return Found::Whole(length),
            Found::Start => best = Found::Start,
            Found::Nothing => {}
        }
    }
    best
}

/// HTML's names of ASCII characters.
const NAMED: [(&str, char); 36] = [
    ("AMP", '&'),
    ("GT", '>'),
    ("Hat", '^'),
    ("LT", '<'),
    ("QUOT", '"'),
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("sol", '/'),
    ("verbar", '|'),
];

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "k%/&\\ é_9";

    #[test]
    fn every_character_may_be_spelled_in_its_own_way() {
        for spelled in [
            TEXT,
            "K%25/&amp;\\\\+%c3%a9&lowbar;9",
            "\\u006b&#37;&sol;&#x26;\\u005C%20\\u00e9\\x5f&#57;",
            "%6B%%2f&AMP;%5c é_\\u{39}",
            "k&#0037;\\/&\\\\ \\u00E9&#x0005f;9",
        ] {
            assert_eq!(Escaped::new(TEXT).find_at(spelled.as_bytes()), Found::Whole(spelled.len()), "{spelled}");
            for length in 0..spelled.len() {
                let cut = &spelled.as_bytes()[..length];
                assert_eq!(Escaped::new(TEXT).find_at(cut), Found::Start, "{spelled} cut at {length}");
            }
        }
    }

    #[test]
    fn a_text_of_many_backslashes_is_looked_for_once_per_place() {
        let secret = "\\".repeat(60);
        // No escape begins with `\z`, so nothing is cut off by the end.
        let text = format!("{}z", "\\".repeat(100));
        assert_eq!(Escaped::new(&format!("{secret}y")).find_at(text.as_bytes()), Found::Nothing);
        assert!(matches!(Escaped::new(&secret).find_at(text.as_bytes()), Found::Whole(_)));
    }

    #[test]
    fn another_text_is_not_found() {
        for other in ["k%/&\\ é_8", "k%26/", "&#108;", "\\u006c", "%6c", "x", "&unknown;", "&#x6b", "&aaaaaaaaaaaaaaaa"]
        {
            let found = Escaped::new(TEXT).find_at(format!("{other} and more").as_bytes());
            assert_eq!(found, Found::Nothing, "{other}");
        }
    }
}
