//! Cuts text into the pieces within which tokens are merged, as the published patterns of the two vocabularies say.
//!
//! The patterns are regular expressions with look-ahead. They are followed by hand here: that is exact, linear in the text, and needs
//! none of the caches that an engine keeps per thread. Each step below names the alternative of the pattern that it follows, in order.
//!
//! `o200k_base`:
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?   word
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?   capitals
//! \p{N}{1,3}   digits
//!  ?[^\s\p{L}\p{N}]+[\r\n/]*   symbols
//! \s*[\r\n]+ | \s+(?!\S) | \s+   white space
//! ```
//! `cl100k_base`:
//! ```text
//! '(?i:[sdmt]|ll|ve|re) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}{1,3} |  ?[^\s\p{L}\p{N}]+[\r\n]* | \s+$ | \s*[\r\n] | \s+(?!\S) | \s
//! ```

use super::classes::Class;

/// Which pattern is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// That of `o200k_base`.
    O200k,
    /// That of `cl100k_base`.
    Cl100k,
}

/// The pieces of a text, none of them empty; together they are the text.
pub(super) struct Pieces<'a> {
    rest: &'a str,
    pattern: Pattern,
}

impl<'a> Pieces<'a> {
    pub(super) const fn new(text: &'a str, pattern: Pattern) -> Self {
        Self { rest: text, pattern }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let length = match self.pattern {
            Pattern::O200k => o200k(self.rest, first),
            Pattern::Cl100k => cl100k(self.rest, first),
        };
        // Each alternative takes whole characters and at least one; should that ever fail, one character is always a step forward.
        let (piece, rest) = self.rest.split_at_checked(length.max(first.len_utf8())).unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(piece)
    }
}

fn o200k(text: &str, first: char) -> usize {
    let prefix = prefix(first);
    let after_prefix = prefix.and_then(|length| text.get(length..));
    let word_or = |core: fn(&str) -> Option<usize>| {
        let with = after_prefix.and_then(core).map(|length| length + prefix.unwrap_or(0));
        with.or_else(|| core(text)).map(|length| length + contraction(text.get(length..).unwrap_or("")))
    };
    word_or(word)
        .or_else(|| word_or(capitals))
        .or_else(|| digits(text))
        .or_else(|| symbols(text, |c| matches!(c, '\r' | '\n' | '/')))
        .unwrap_or_else(|| white_space(text, Pattern::O200k))
}

fn cl100k(text: &str, first: char) -> usize {
    let contracted = contraction(text);
    if contracted > 0 {
        return contracted;
    }
    let prefix = prefix(first).unwrap_or(0);
    let letters = run(text.get(prefix..).unwrap_or(""), |c| Class::of(c).is_letter());
    if letters > 0 {
        return prefix + letters;
    }
    digits(text)
        .or_else(|| symbols(text, |c| matches!(c, '\r' | '\n')))
        .unwrap_or_else(|| white_space(text, Pattern::Cl100k))
}

/// `[^\r\n\p{L}\p{N}]`
fn prefix(first: char) -> Option<usize> {
    let class = Class::of(first);
    let fits = !matches!(first, '\r' | '\n') && !class.is_letter() && class != Class::Number;
    fits.then(|| first.len_utf8())
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
fn word(text: &str) -> Option<usize> {
    let mut caseless_end = None;
    let mut end = 0;
    for c in text.chars() {
        let class = Class::of(c);
        if class == Class::Lower {
            // The first part ends here, and the second takes everything that fits from here on.
            let tail = run(text.get(end..)?, |c| Class::of(c) == Class::Lower || Class::of(c).is_caseless());
            return Some(end + tail);
        }
        if class != Class::Upper && !class.is_caseless() {
            break;
        }
        end += c.len_utf8();
        if class.is_caseless() {
            caseless_end = Some(end);
        }
    }
    // No lower-case letter follows: the first part gives back what the second needs, back to the last character that fits both.
    caseless_end
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` where [`word`] does not match, so that only capitals are left.
fn capitals(text: &str) -> Option<usize> {
    let length = run(text, |c| Class::of(c) == Class::Upper);
    (length > 0).then_some(length)
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
fn contraction(text: &str) -> usize {
    let mut chars = text.chars();
    if chars.next() != Some('\'') {
        return 0;
    }
    // Ignoring case, the long s is an s.
    let first = chars.next().map_or('\0', |c| if c == 'ſ' { 's' } else { c.to_ascii_lowercase() });
    let second = chars.next().map_or('\0', |c| c.to_ascii_lowercase());
    match (first, second) {
        ('s' | 't' | 'm' | 'd', _) => text.chars().take(2).map(char::len_utf8).sum(),
        ('r' | 'v', 'e') | ('l', 'l') => 3,
        _ => 0,
    }
}

/// `\p{N}{1,3}`
fn digits(text: &str) -> Option<usize> {
    let length: usize = text.chars().take(3).take_while(|c| Class::of(*c) == Class::Number).map(char::len_utf8).sum();
    (length > 0).then_some(length)
}

/// ` ?[^\s\p{L}\p{N}]+` and then what may follow.
fn symbols(text: &str, follows: fn(char) -> bool) -> Option<usize> {
    let space = usize::from(text.starts_with(' '));
    let symbols = run(text.get(space..)?, |c| matches!(Class::of(c), Class::Mark | Class::Other));
    (symbols > 0).then(|| space + symbols + run(text.get(space + symbols..).unwrap_or(""), follows))
}

/// The alternatives for white space.
fn white_space(text: &str, pattern: Pattern) -> usize {
    let whole = run(text, char::is_whitespace);
    let at_end = whole == text.len();
    if at_end && pattern == Pattern::Cl100k {
        return whole; // \s+$
    }
    let spaces = text.get(..whole).unwrap_or("");
    if let Some(newline) = spaces.rfind(['\r', '\n']) {
        return newline + 1; // \s*[\r\n]+
    }
    match spaces.char_indices().next_back() {
        Some((last, _)) if !at_end && last > 0 => last, // \s+(?!\S)
        _ => whole,
    }
}

/// How long the beginning is whose characters all fit.
fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &str, pattern: Pattern) -> Vec<&str> {
        Pieces::new(text, pattern).collect()
    }

    #[test]
    fn o200k_cuts_as_its_pattern_says() {
        let table: [(&str, &[&str]); 12] = [
            ("Hello world's end", &["Hello", " world's", " end"]),
            ("HTTPServer", &["HTTPServer"]),
            ("HTTP server", &["HTTP", " server"]),
            ("漢字ABC", &["漢字", "ABC"]),
            ("\u{301}ABC", &["\u{301}", "ABC"]),
            ("12345", &["123", "45"]),
            ("a  b", &["a", " ", " b"]),
            ("a \n\n  b", &["a", " \n\n", " ", " b"]),
            ("end  ", &["end", "  "]),
            ("\n  ", &["\n", "  "]),
            ("x = 1;//\n/y", &["x", " =", " ", "1", ";//\n/", "y"]),
            (".Net it'S", &[".Net", " it'S"]),
        ];
        for (text, expected) in table {
            assert_eq!(pieces(text, Pattern::O200k), expected, "{text:?}");
        }
    }

    #[test]
    fn cl100k_cuts_as_its_pattern_says() {
        let table: [(&str, &[&str]); 6] = [
            ("Hello world's end", &["Hello", " world", "'s", " end"]),
            ("'Tis", &["'T", "is"]),
            ("\n  ", &["\n  "]),
            ("a \n\n  b", &["a", " \n\n", " ", " b"]),
            ("x//\n/y", &["x", "//\n", "/y"]),
            ("e\u{301}a", &["e", "\u{301}a"]),
        ];
        for (text, expected) in table {
            assert_eq!(pieces(text, Pattern::Cl100k), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_together_are_the_text(text in "\\PC{0,60}|[ \\r\\n\\t'aA1/.é漢\u{301}]{0,60}") {
            for pattern in [Pattern::O200k, Pattern::Cl100k] {
                let pieces = pieces(&text, pattern);
                prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
                prop_assert_eq!(pieces.concat(), text.as_str());
            }
        }
    }
}
