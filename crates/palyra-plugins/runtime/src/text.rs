//! Words that a guest or a library chose, made fit for one line of a log, a screen or a model.

/// The longest text of an error.
const LINE_BYTES: usize = 1024;

/// One line without control characters, at most [`LINE_BYTES`] long.
pub(crate) fn one_line(text: &str) -> String {
    clean(text, LINE_BYTES)
}

/// At most `limit` bytes, control characters turned into spaces; `…` where something was cut off.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    let mut line: String = kept.chars().map(|character| if is_unsafe(character) { ' ' } else { character }).collect();
    if end < text.len() {
        line.push('…');
    }
    line
}

/// Control characters, and those that turn the direction of writing.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_short() {
        assert_eq!(one_line("a\nb\u{1b}[31mc\u{202e}d"), "a b [31mc d");
        assert_eq!(clean("aéé", 4), "aé…");
        assert_eq!(clean("", 4), "");
        assert_eq!(one_line(&"x".repeat(5000)).chars().count(), 1025);
    }
}
