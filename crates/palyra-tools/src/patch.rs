//! A patch as data: which files, and for each hunk which old lines become which new ones.
//!
//! Two notations are read into the same form: unified diffs (`patch_unified.rs`) and the `*** Begin Patch` envelope that
//! models commonly write (`patch_envelope.rs`). Applying is `patch_apply.rs`. Reading is strict where leniency could drop a
//! part of a patch in silence: a line that belongs nowhere is an error.

use std::ops::Range;

use crate::{ToolError, patch_envelope, patch_unified};

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePatch {
    /// The file, in the workspace's text form.
    pub(crate) path: String,
    pub(crate) action: Action,
    /// Line of the patch where this file begins, from 1.
    pub(crate) line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A new file.
    Add { content: String, mode: Option<u32> },
    /// The file goes; a unified diff says what it must hold.
    Delete { hunks: Vec<Hunk> },
    /// New content, a new name, or both.
    Update { hunks: Vec<Hunk>, move_to: Option<String>, mode: Option<u32> },
}

/// Some lines to find and what to make of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hunk {
    pub(crate) place: HunkPlace,
    pub(crate) lines: Vec<HunkLine>,
    /// The last old line has no newline after it.
    pub(crate) old_ends_open: bool,
    /// The last new line has no newline after it.
    pub(crate) new_ends_open: bool,
}

/// Where a hunk belongs, as far as the patch says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HunkPlace {
    /// Number of the first old line, from 1; a hint, since models miscount.
    pub(crate) line: Option<usize>,
    /// Lines that come before the hunk, outermost first.
    pub(crate) anchors: Vec<String>,
    /// The hunk ends the file.
    pub(crate) at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HunkLine {
    pub(crate) kind: LineKind,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Context,
    Old,
    New,
}

impl Hunk {
    /// The lines that must be there.
    pub(crate) fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.kind != LineKind::New).map(|line| line.text.as_str())
    }
}

/// Reads a patch in either notation.
pub(crate) fn parse(text: &str) -> Result<Vec<FilePatch>, ToolError> {
    let lines = PatchLines::new(text);
    let first = lines.first_of_substance();
    let files = match first.and_then(|index| lines.get(index)) {
        None => return Err(malformed(0, "it is empty")),
        Some(line) if line.starts_with("*** ") => patch_envelope::parse(&lines)?,
        Some(_) => patch_unified::parse(&lines)?,
    };
    if files.is_empty() {
        return Err(malformed(0, "it changes no file"));
    }
    Ok(files)
}

/// Whether carriage returns belong to the lines of this patch: only if some of its lines have one and some do not.
pub(crate) fn keeps_carriage_returns(text: &str) -> bool {
    let ends = text.matches('\n').count();
    let carriage = text.matches("\r\n").count();
    carriage > 0 && carriage < ends
}

/// The lines of a patch without their ends, and without the code fence that models like to put around one.
pub(crate) struct PatchLines<'a> {
    lines: Vec<&'a str>,
    range: Range<usize>,
}

impl<'a> PatchLines<'a> {
    fn new(text: &'a str) -> Self {
        let keep = keeps_carriage_returns(text);
        let mut lines: Vec<&str> =
            text.split('\n').map(|line| if keep { line } else { line.strip_suffix('\r').unwrap_or(line) }).collect();
        // The text after the last newline is a line only if there is any.
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let mut range = 0..lines.len();
        let blank = |line: &&str| line.trim().is_empty();
        let first = lines.iter().position(|line| !blank(line));
        let last = lines.iter().rposition(|line| !blank(line));
        if let (Some(first), Some(last)) = (first, last) {
            let fence = |index: usize| lines.get(index).is_some_and(|line| line.trim().starts_with("```"));
            if first < last && fence(first) && fence(last) {
                range = first + 1..last;
            }
        }
        Self { lines, range }
    }

    /// The line at an index counted from the beginning of the text.
    pub(crate) fn get(&self, index: usize) -> Option<&'a str> {
        if self.range.contains(&index) { self.lines.get(index).copied() } else { None }
    }

    /// A line that is not part of a file's content: without the carriage return it may have.
    pub(crate) fn header(&self, index: usize) -> Option<&'a str> {
        self.get(index).map(|line| line.strip_suffix('\r').unwrap_or(line))
    }

    pub(crate) fn first_of_substance(&self) -> Option<usize> {
        self.range.clone().find(|index| self.get(*index).is_some_and(|line| !line.trim().is_empty()))
    }
}

/// A patch that cannot be read; `index` counts from 0.
pub(crate) fn malformed(index: usize, reason: impl Into<String>) -> ToolError {
    ToolError::PatchMalformed { line: index + 1, reason: reason.into() }
}

/// The line number in `-12,3` or `+12`.
pub(crate) fn range_of(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

/// The ranges of `@@ -1,2 +3,4 @@ heading`, if it has any.
pub(crate) fn hunk_ranges(header: &str) -> Option<((usize, usize), (usize, usize))> {
    let mut words = header.strip_prefix("@@")?.split_whitespace();
    let old = range_of(words.next()?.strip_prefix('-')?)?;
    let new = range_of(words.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
