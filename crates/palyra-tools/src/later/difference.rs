//! The difference that a person is shown before they accept a change, and what of it is not shown.
//!
//! What is left out is counted, never dropped: who could pad a file until the text that matters is cut off would have it accepted unseen. Both ends are kept, because a file is
//! read from the beginning and added to at the end.

use super::Held;

/// Most bytes of a difference that are shown.
const SHOWN: usize = 8 << 10;
/// Of these, for the beginning.
const HEAD: usize = SHOWN / 4 * 3;
/// Longest line that is shown whole.
const LINE: usize = 1 << 10;
/// Of a longer one, how much of each end.
const LINE_END: usize = LINE / 4;

/// A difference for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// Lines that went, and lines that came.
    pub(super) text: String,
    /// What is not shown, if anything is not.
    pub(super) not_shown: Option<String>,
}

impl Difference {
    /// Nothing of a change can be shown.
    pub(super) fn hidden(why: String) -> Self {
        Self { text: format!("({why}: it cannot be shown)\n"), not_shown: Some(why) }
    }

    /// The lines that went and those that came, without what is the same at the beginning and the end.
    pub(super) fn of(before: Held<'_>, after: Held<'_>) -> Self {
        let new = match text(after) {
            Ok(text) => text,
            Err(why) => return Self::hidden(why),
        };
        let (old, unknown) = match text(before) {
            Ok(text) => (text, None),
            // What comes can be judged all the same.
            Err(why) => (String::new(), Some(format!("what it replaces, {why}"))),
        };
        if unknown.is_none() && old == new {
            let text = "(its content is what it was; its mode or its kind changed)\n".to_owned();
            return Self { text, not_shown: None };
        }
        let (old, new): (Vec<&str>, Vec<&str>) = (lines(&old), lines(&new));
        let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let (old, new) = (old.get(first..).unwrap_or_default(), new.get(first..).unwrap_or_default());
        let last = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        let went = old.iter().take(old.len().saturating_sub(last)).map(|line| Line::of('-', line));
        let came = new.iter().take(new.len().saturating_sub(last)).map(|line| Line::of('+', line));
        let (text, cut) = shown(&went.chain(came).collect::<Vec<_>>());
        let replaced = if unknown.is_some() { "(what it replaces cannot be shown)\n" } else { "" };
        let not_shown: Vec<String> = unknown.into_iter().chain(cut).collect();
        Self {
            text: format!("{replaced}@@ line {}\n{text}", first + 1),
            not_shown: (!not_shown.is_empty()).then(|| not_shown.join("; ")),
        }
    }

    /// Appends a difference that comes with it, under a heading.
    pub(super) fn append(&mut self, heading: &str, other: Self) {
        self.text.push_str(heading);
        self.text.push('\n');
        self.text.push_str(&other.text);
        if let Some(why) = other.not_shown {
            let earlier = self.not_shown.take().map(|earlier| format!("{earlier}; ")).unwrap_or_default();
            self.not_shown = Some(format!("{earlier}{why}"));
        }
    }
}

/// The text of one side, or why there is none.
fn text(held: Held<'_>) -> Result<String, String> {
    match held {
        Held::Nothing => Ok(String::new()),
        Held::File(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
            _ => Err(format!("{} bytes that are not text", bytes.len())),
        },
        Held::Unknown => Err("something that is too large or cannot be read".to_owned()),
    }
}

/// Lines with everything that tells them apart: a carriage return at the end is part of one.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}

/// A line as it is shown.
struct Line {
    text: String,
    /// Bytes of it that are not shown.
    cut: usize,
}

impl Line {
    fn of(sign: char, line: &str) -> Self {
        let line = line.replace('\r', "\\r");
        if line.len() <= LINE {
            return Self { text: format!("{sign}{line}"), cut: 0 };
        }
        let head = line.get(..line.floor_char_boundary(LINE_END)).unwrap_or_default();
        let tail = line.get(line.ceil_char_boundary(line.len() - LINE_END)..).unwrap_or_default();
        let cut = line.len() - head.len() - tail.len();
        Self { text: format!("{sign}{head}[… {cut} bytes of this line are not shown …]{tail}"), cut }
    }
}

/// Both ends of the lines, and what is missing between them and in them.
fn shown(lines: &[Line]) -> (String, Option<String>) {
    let size = |line: &Line| line.text.len() + 1;
    let whole: usize = lines.iter().map(size).sum();
    let fitting = |lines: &mut dyn Iterator<Item = &Line>, bytes: usize| {
        let mut left = bytes;
        lines
            .take_while(|line| match left.checked_sub(size(line)) {
                Some(rest) => {
                    left = rest;
                    true
                }
                None => false,
            })
            .count()
    };
    let (head, tail) = if whole <= SHOWN {
        (lines.len(), 0)
    } else {
        (fitting(&mut lines.iter(), HEAD), fitting(&mut lines.iter().rev(), SHOWN - HEAD))
    };
    let middle = lines.get(head..lines.len().saturating_sub(tail)).unwrap_or_default();
    let mut text = String::new();
    let mut put = |lines: &[Line]| {
        for line in lines {
            text.push_str(&line.text);
            text.push('\n');
        }
    };
    put(lines.get(..head).unwrap_or_default());
    let mut not_shown = Vec::new();
    if !middle.is_empty() {
        let came = middle.iter().filter(|line| line.text.starts_with('+')).count();
        let bytes: usize = middle.iter().map(|line| size(line) + line.cut).sum();
        let why = format!("{came} added and {} removed lines ({bytes} bytes)", middle.len() - came);
        put(&[Line { text: format!("[… {why} are not shown …]"), cut: 0 }]);
        not_shown.push(why);
    }
    put(lines.get(lines.len().saturating_sub(tail)..).unwrap_or_default());
    let cut: usize = lines.iter().map(|line| line.cut).sum();
    if cut > 0 {
        not_shown.push(format!("{cut} bytes of long lines"));
    }
    (text, (!not_shown.is_empty()).then(|| not_shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(before: &str, after: &str) -> Difference {
        Difference::of(Held::File(before.as_bytes()), Held::File(after.as_bytes()))
    }

    #[test]
    fn it_shows_what_went_and_what_came() {
        let made = difference("all:\n\ttrue\nend\n", "all:\n\tfalse\n\tevil\nend\n");
        assert_eq!(made.text, "@@ line 2\n-\ttrue\n+\tfalse\n+\tevil\n");
        assert_eq!(made.not_shown, None);
        assert_eq!(difference("a\n", "a\r\n").text, "@@ line 1\n-a\n+a\\r\n");
        assert!(difference("a\n", "a\n").text.contains("its mode"));
    }

    #[test]
    fn padding_hides_no_payload_and_what_is_left_out_is_counted() {
        let padding = "# harmless\n".repeat(5_000);
        for made in [difference("", &format!("{padding}evil\n")), difference("end\n", &format!("{padding}evil\nend\n"))]
        {
            assert!(made.text.contains("+evil\n"), "the end is shown");
            assert!(made.text.len() < SHOWN + 200);
            let left_out = made.text.lines().find(|line| line.starts_with('[')).unwrap();
            assert!(made.not_shown.as_deref().is_some_and(|why| left_out.contains(why)), "{left_out}");
        }
        let made = difference("", &format!("{padding}evil\n{padding}"));
        let lines = made.text.lines().filter(|line| line.starts_with('+')).count();
        assert!(made.not_shown.unwrap().starts_with(&format!("{} added and 0 removed lines", 10_001 - lines)));
        let long = format!("{}evil{}\n", " ".repeat(4_000), "x".repeat(4_000));
        let made = difference("", &long);
        assert_eq!(made.not_shown.unwrap(), format!("{} bytes of long lines", 8_004 - 2 * LINE_END));
    }

    #[test]
    fn what_is_no_text_says_so() {
        for after in [Held::Unknown, Held::File(b"\x7fELF\0"), Held::File(b"\xff")] {
            assert!(Difference::of(Held::Nothing, after).not_shown.is_some(), "{after:?}");
        }
        let made = Difference::of(Held::Unknown, Held::File(b"evil\n"));
        assert!(made.text.contains("+evil\n"), "what comes is shown even if what was there cannot be");
        assert!(made.not_shown.is_some());
    }
}
