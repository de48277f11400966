//! Text from outside as Cedar literals.
//!
//! Everything but plain printable ASCII is written as an escape, so a value can neither end its literal, nor hide in the file, nor look
//! like something else to whoever reads it. In a pattern a star of the value is an escaped star.

use std::fmt::Write as _;

/// A string literal.
pub(crate) fn quoted(text: &str) -> String {
    literal(text, |_| false)
}

/// A pattern for `like` that matches exactly what begins with this text.
pub(crate) fn beginning_with(text: &str) -> String {
    let mut pattern = literal(text, |letter| letter == '*');
    pattern.insert(pattern.len().saturating_sub(1), '*');
    pattern
}

/// A pattern for `like` that matches exactly what contains this text.
pub(crate) fn containing(text: &str) -> String {
    let mut pattern = beginning_with(text);
    pattern.insert(1, '*');
    pattern
}

fn literal(text: &str, is_special: impl Fn(char) -> bool) -> String {
    let mut line = String::with_capacity(text.len() + 2);
    line.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                line.push('\\');
                line.push(letter);
            }
            letter if is_special(letter) => {
                line.push('\\');
                line.push(letter);
            }
            ' '..='~' => line.push(letter),
            letter => {
                // Writing to a string cannot fail.
                let _infallible = write!(line, "\\u{{{:x}}}", u32::from(letter));
            }
        }
    }
    line.push('"');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_literal() {
        assert_eq!(quoted("a\"b\\c\n*\u{202e}"), "\"a\\\"b\\\\c\\u{a}*\\u{202e}\"");
        assert_eq!(beginning_with("a*b "), "\"a\\*b *\"");
        assert_eq!(containing("|"), "\"*|*\"");
    }
}
