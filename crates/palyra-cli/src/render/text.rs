//! Small pieces: durations, instants, shortened and quoted lines.

use std::time::Duration;

use palyra_common::Timestamp;

use crate::console::{one_line, plain};

/// `12 ms`, `1.4 s`, `2 min 3 s`, `3 h 5 min`.
pub(crate) fn duration(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, duration.subsec_millis() / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// The same for a number of milliseconds.
pub(crate) fn millis(millis: u64) -> String {
    duration(Duration::from_millis(millis))
}

/// `2026-11-15 08:09:10`, in UTC.
pub(crate) fn instant(at: Timestamp) -> String {
    at.to_rfc3339().chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// `2026-11-15 08:09`, in UTC, for lists.
pub(crate) fn minute(at: Timestamp) -> String {
    instant(at).chars().take(16).collect()
}

/// One line of at most `width` characters, with an ellipsis where something was left out.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    let line = one_line(text);
    let line = line.trim();
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Lines of at most `width` characters, broken between words; a word that is longer than a line is broken where the line ends.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let mut letters: Vec<char> = word.chars().collect();
        if length > 0 && length + 1 + letters.len() > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        } else if length > 0 {
            line.push(' ');
            length += 1;
        }
        while length + letters.len() > width {
            let rest = letters.split_off(width - length);
            line.extend(letters);
            lines.push(std::mem::take(&mut line));
            (letters, length) = (rest, 0);
        }
        length += letters.len();
        line.extend(letters);
    }
    lines.push(line);
    lines
}

/// A line fitted to so many columns: its parts stand below where its text begins, behind a label and two blanks if it has one. A command stays on
/// one line, so that it can be copied.
pub(crate) fn fitted(line: &str, columns: Option<usize>) -> Vec<String> {
    let Some(columns) = columns.filter(|columns| line.chars().count() > *columns) else { return vec![line.to_owned()] };
    let text = line.trim_start();
    let is_command = |text: &str| text.trim_start().starts_with("palyra ");
    // `next: palyra …`, `to follow it: palyra …`: a command that stands alone behind a few words.
    let few_words = |label: &str| label.split(' ').count() <= 4 && !label.contains('(');
    let labelled = text.split_once("  ").or_else(|| text.split_once(": ").filter(|(label, _)| few_words(label)));
    if is_command(text) || labelled.is_some_and(|(_, rest)| is_command(rest)) {
        return vec![line.to_owned()];
    }
    let blanks = line.len() - text.len();
    let label = text
        .split_once("  ")
        .filter(|(label, _)| !label.contains(' '))
        .map_or(0, |(label, rest)| label.chars().count() + 2 + rest.len() - rest.trim_start().len());
    // A label that takes up most of the line is one more word.
    let indent = if blanks + label > columns / 2 { blanks.min(columns / 2) } else { blanks + label };
    let head: String = line.chars().take(indent).collect();
    let rest: String = line.chars().skip(indent).collect();
    let parts = wrapped(&rest, columns - indent).into_iter().enumerate();
    parts.map(|(at, part)| if at == 0 { format!("{head}{part}") } else { format!("{:indent$}{part}", "") }).collect()
}

/// The same with the gap in the middle: of an address, a path or a command both ends tell something.
pub(crate) fn shortened_inside(text: &str, width: usize) -> String {
    let line = one_line(text);
    let line = line.trim();
    let length = line.chars().count();
    if length <= width {
        return line.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail = kept / 2;
    let head: String = line.chars().take(kept - tail).collect();
    let tail: String = line.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}

/// Text of which every character can be seen. More than [`plain`]: a character without a shape is one by which two
/// different values look the same, so each becomes a mark.
pub(crate) fn visible(text: &str) -> String {
    plain(text)
        .chars()
        .map(|c| match c {
            '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Words of others between marks that they cannot close themselves.
pub(crate) fn quoted(text: &str) -> String {
    let inner: String = text
        .chars()
        .map(|c| match c {
            '«' => '‹',
            '»' => '›',
            c => c,
        })
        .collect();
    format!("«{inner}»")
}

/// `1 file`, `3 files`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well_at_every_size() {
        let shown: Vec<String> = [0, 12, 999, 1_000, 1_449, 59_999, 60_000, 123_000, 11_100_000].map(millis).to_vec();
        assert_eq!(
            shown,
            ["0 ms", "12 ms", "999 ms", "1.0 s", "1.4 s", "59.9 s", "1 min 0 s", "2 min 3 s", "3 h 5 min"]
        );
    }

    #[test]
    fn shortening_counts_characters_and_keeps_one_line() {
        assert_eq!(shortened("äöü\nß", 10), "äöü ß");
        assert_eq!(shortened("äöüß", 3), "äö…");
        assert_eq!(instant(Timestamp(1_794_700_000_123)), "2026-11-14 23:46:40");
        assert_eq!(shortened_inside("abcdefghij", 5), "ab…ij");
        assert_eq!(shortened_inside("abcdefghij", 10), "abcdefghij");
        assert_eq!((shortened_inside("äöü", 1), shortened_inside("äöü", 2)), ("…".to_owned(), "ä…".to_owned()));
        assert_eq!((counted(1, "file"), counted(0, "file")), ("1 file".to_owned(), "0 files".to_owned()));
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a verylongword b", 5), ["a", "veryl", "ongwo", "rd b"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("äöü ß", 3), ["äöü", "ß"]);
        let fit = |line: &str| fitted(line, Some(20));
        assert_eq!(
            fit("reason   the model was away too long"),
            ["reason   the model", "         was away", "         too long"]
        );
        assert_eq!(fit("  an answer of several words"), ["  an answer of", "  several words"]);
        assert_eq!(fit("  palyra approvals show 01ABCDEF"), ["  palyra approvals show 01ABCDEF"]);
        assert_eq!(fit("short"), ["short"]);
        assert_eq!(fitted("long enough to be broken", None), ["long enough to be broken"]);
    }

    #[test]
    fn nothing_hides_and_nothing_closes_its_own_quotation() {
        assert_eq!(
            visible("pay\u{200b}pal\u{feff}\u{e0041}.com\u{202e}"),
            "pay\u{fffd}pal\u{fffd}\u{fffd}.com\u{fffd}"
        );
        assert_eq!(visible("naïve 漢字 👍"), "naïve 漢字 👍");
        assert_eq!(quoted("a» trust me «b"), "«a› trust me ‹b»");
    }
}
