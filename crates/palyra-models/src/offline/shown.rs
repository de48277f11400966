//! What a tool result shows: the text itself, and whether that is all of it.
//!
//! Tools end a result that is not the whole with a note in brackets. The note is no part of the text, and what is counted of a part is said to be of a part.

use super::summary;

/// Lines of a result that the answer repeats.
const SHOWN_LINES: usize = 40;
/// Stands in every closing note about a result that goes on.
const GOES_ON: &str = " shown; ";
/// Stands in the note of a result that was shortened in its middle, to fit the window or the output limit.
const LEFT_OUT: &str = "bytes left out";
/// What an empty file looks like.
const EMPTY_FILE: &str = "[the file is empty]";

/// A result without its notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown<'a> {
    /// The text.
    pub(super) text: &'a str,
    extent: Extent<'a>,
}

/// How much of the whole it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent<'a> {
    Whole,
    /// A part, with how much that is where the note says so: `27890 of 13888896 bytes`.
    Part(Option<&'a str>),
}

impl<'a> Shown<'a> {
    /// Reads a result.
    pub(super) fn of(content: &'a str) -> Self {
        if content == EMPTY_FILE {
            return Self { text: "", extent: Extent::Whole };
        }
        let start = content.trim_end().rfind('\n').map_or(0, |line_end| line_end + 1);
        let last = content.get(start..).unwrap_or_default().trim_end();
        let note = last.strip_prefix('[').and_then(|note| note.split_once(GOES_ON));
        if let Some((amount, _)) = note {
            return Self { text: content.get(..start).unwrap_or_default(), extent: Extent::Part(Some(amount)) };
        }
        let shortened = content.lines().any(|line| line.starts_with("[…") && line.contains(LEFT_OUT));
        Self { text: content, extent: if shortened { Extent::Part(None) } else { Extent::Whole } }
    }

    /// Whether there is more than this.
    pub(super) fn is_part(&self) -> bool {
        self.extent != Extent::Whole
    }

    /// A text, by its name, and how long it is, as far as that was seen.
    pub(super) fn measured(&self, name: &str) -> String {
        let counted = summary::counts(self.text);
        match self.extent {
            Extent::Whole => format!("{name} ({counted})"),
            Extent::Part(Some(amount)) => format!("the beginning of {name} ({counted}; {amount})"),
            Extent::Part(None) => format!("parts of {name}"),
        }
    }

    /// The first lines, for the answer.
    pub(super) fn beginning(&self) -> String {
        let mut lines = self.text.trim_end().lines();
        let mut shown: Vec<String> = lines.by_ref().take(SHOWN_LINES).map(str::to_owned).collect();
        match (lines.count(), self.extent) {
            (0, Extent::Whole | Extent::Part(None)) => {}
            (0, Extent::Part(Some(amount))) => shown.push(format!("… ({amount})")),
            (1, Extent::Whole) => shown.push("… and 1 more line".to_owned()),
            (rest, Extent::Whole) => shown.push(format!("… and {rest} more lines")),
            (_, Extent::Part(_)) => shown.push("… and more".to_owned()),
        }
        shown.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_counted_as_the_whole() {
        let lines = "line\n".repeat(2_000);
        let note = "[10000 of 10000000 bytes shown; continue with offset 2001 or byte_offset 10000]";
        let content = format!("{lines}{note}");
        let shown = Shown::of(&content);
        assert!(shown.is_part());
        assert_eq!(
            shown.measured("`big.txt`"),
            "the beginning of `big.txt` (2000 lines, 2000 words; 10000 of 10000000 bytes)"
        );
        let beginning = shown.beginning();
        assert!(beginning.ends_with("line\n… and more"), "{beginning}");
        assert_eq!(Shown::of(&lines).measured("`a`"), "`a` (2000 lines, 2000 words)");
        assert!(Shown::of(&lines).beginning().ends_with("… and 1960 more lines"));
        let few = Shown::of("a:1:x\n[1 of 900 matching lines shown; narrow the pattern or raise limit]\n");
        assert_eq!(few.beginning(), "a:1:x\n… (1 of 900 matching lines)");
        assert_eq!(Shown::of("[the file is empty]").measured("`a`"), "`a` (0 lines, 0 words)");
        assert_eq!(Shown::of("").beginning(), "");
    }
}
