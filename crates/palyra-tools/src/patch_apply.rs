//! Applies hunks to a file's bytes: exactly or not at all.
//!
//! Old lines must be in the file as they are in the patch. Where they are is settled by, in this order: the line number of the
//! header, if they are there; an `@@` anchor; being the only place in the rest of the file. A hunk that fits in several places
//! is refused, since a wrong guess would be a silent change of the wrong code. Line ends are kept: a patch written with `\n`
//! changes a file with `\r\n` without touching its other lines.

use crate::ToolError;
use crate::cancel::Cancel;
use crate::patch::{Hunk, LineKind};

/// Longest line of a patch quoted in an error, in characters.
const QUOTED: usize = 120;

/// A line and what ends it.
#[derive(Clone, Copy)]
struct Line<'a> {
    content: &'a [u8],
    end: &'a [u8],
}

/// Whether a carriage return before a newline is part of the line's end or of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarriageReturns {
    EndLines,
    AreContent,
}

/// The file with all hunks applied; the error names the first that does not apply.
pub(crate) fn apply(
    path: &str,
    original: &[u8],
    hunks: &[Hunk],
    returns: CarriageReturns,
    cancel: &Cancel,
) -> Result<Vec<u8>, ToolError> {
    let lines = split(original, returns);
    // New lines end as the lines of the file do, if these all end alike.
    let mut ends = lines.iter().map(|line| line.end).filter(|end| !end.is_empty()).peekable();
    let newline: &[u8] = if ends.peek().is_some() && ends.all(|end| end == b"\r\n") { b"\r\n" } else { b"\n" };
    let mut closed = lines.last().is_none_or(|line| !line.end.is_empty());
    let open_at_first = !closed;
    let mut result: Vec<Line<'_>> = Vec::with_capacity(lines.len());
    let mut cursor = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        cancel.check()?;
        let fail = |reason: String| ToolError::PatchDoesNotApply { path: path.to_owned(), hunk: number + 1, reason };
        let old: Vec<&[u8]> = hunk.old().map(str::as_bytes).collect();
        let at = locate(&lines, cursor, hunk, &old).map_err(fail)?;
        let after = at + old.len();
        if hunk.old_ends_open && (after != lines.len() || !open_at_first) {
            return Err(fail("it says that the file ends without a newline, which is not so here".to_owned()));
        }
        result.extend(lines.get(cursor..at).unwrap_or_default());
        let mut kept = lines.get(at..after).unwrap_or_default().iter();
        for line in &hunk.lines {
            match line.kind {
                LineKind::Context => result.extend(kept.next()),
                LineKind::Old => drop(kept.next()),
                LineKind::New => result.push(Line { content: line.text.as_bytes(), end: newline }),
            }
        }
        if hunk.new_ends_open {
            closed = false;
        } else if hunk.old_ends_open {
            closed = true;
        }
        cursor = after;
    }
    result.extend(lines.get(cursor..).unwrap_or_default());
    Ok(join(&result, newline, closed))
}

fn split(bytes: &[u8], returns: CarriageReturns) -> Vec<Line<'_>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| {
            let length = match returns {
                CarriageReturns::EndLines if line.ends_with(b"\r\n") => line.len() - 2,
                _ if line.ends_with(b"\n") => line.len() - 1,
                _ => line.len(),
            };
            let (content, end) = line.split_at(length);
            Line { content, end }
        })
        .collect()
}

fn join(lines: &[Line<'_>], newline: &[u8], closed: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.content.len() + 2).sum());
    for (index, line) in lines.iter().enumerate() {
        bytes.extend_from_slice(line.content);
        if index + 1 < lines.len() || closed {
            bytes.extend_from_slice(if line.end.is_empty() { newline } else { line.end });
        }
    }
    bytes
}

/// The index of the hunk's first old line, or why there is none.
fn locate(lines: &[Line<'_>], cursor: usize, hunk: &Hunk, old: &[&[u8]]) -> Result<usize, String> {
    let mut from = cursor;
    for anchor in &hunk.place.anchors {
        from = find_anchor(lines, from, anchor)?;
    }
    if old.is_empty() {
        return insertion_point(lines, cursor, from, hunk);
    }
    let fits = |at: usize| at >= from && matches_at(lines, at, old);
    if hunk.place.at_end {
        let at = lines.len().checked_sub(old.len()).filter(|at| fits(*at));
        return at.ok_or_else(|| format!("its lines are not the end of the file; {}", nearest(lines, from, old, None)));
    }
    let hint = hunk.place.line.map(|line| line.saturating_sub(1));
    if let Some(at) = hint.filter(|at| fits(*at)) {
        return Ok(at);
    }
    let mut places = (from..lines.len()).filter(|at| fits(*at));
    match (places.next(), places.next()) {
        (None, _) => Err(nearest(lines, from, old, hint)),
        (Some(at), None) => Ok(at),
        // An anchor is there to say which of several: the first one after it.
        (Some(at), Some(_)) if !hunk.place.anchors.is_empty() => Ok(at),
        (Some(at), Some(next)) => Err(format!(
            "its lines are at line {} and again at line {}; add context lines or an `@@` line that tells which",
            at + 1,
            next + 1
        )),
    }
}

fn insertion_point(lines: &[Line<'_>], cursor: usize, from: usize, hunk: &Hunk) -> Result<usize, String> {
    if !hunk.place.anchors.is_empty() {
        return Ok((from + 1).min(lines.len()));
    }
    match hunk.place.line {
        // `-3,0` means "after line 3".
        Some(line) if line >= cursor && line <= lines.len() => Ok(line),
        Some(line) => Err(format!("it inserts after line {line}, but the file has {} lines", lines.len())),
        None => Ok(lines.len()),
    }
}

fn find_anchor(lines: &[Line<'_>], from: usize, anchor: &str) -> Result<usize, String> {
    let wanted = anchor.trim().as_bytes();
    let rest = || lines.iter().enumerate().skip(from);
    let equal = rest().find(|(_, line)| line.content.trim_ascii() == wanted);
    let containing = || {
        let mut found = rest().filter(|(_, line)| line.content.windows(wanted.len()).any(|part| part == wanted));
        // A part of a line is a good anchor only if it is the only one.
        found.next().filter(|_| found.next().is_none())
    };
    equal
        .or_else(containing)
        .map(|(index, _)| index)
        .ok_or_else(|| format!("the `@@` line `{}` is not in the rest of the file", quote(wanted)))
}

fn matches_at(lines: &[Line<'_>], at: usize, old: &[&[u8]]) -> bool {
    lines
        .get(at..at.saturating_add(old.len()))
        .is_some_and(|here| here.iter().zip(old).all(|(line, wanted)| line.content == *wanted))
}

/// Where the hunk comes closest, and the number of the first line that differs there. What the file holds there is not quoted: an error is trusted, the file
/// may not be. Only lines of the patch are.
fn nearest(lines: &[Line<'_>], from: usize, old: &[&[u8]], hint: Option<usize>) -> String {
    let agreeing = |at: usize| {
        let here = lines.get(at..).unwrap_or_default();
        here.iter().zip(old).take_while(|(line, wanted)| line.content == **wanted).count()
    };
    let best = (from..lines.len())
        .map(|at| (agreeing(at), at))
        .filter(|(agreeing, _)| *agreeing > 0)
        .max_by_key(|(agreeing, at)| (*agreeing, std::cmp::Reverse(at.abs_diff(hint.unwrap_or(*at)))));
    let (agreed, at) = match (best, hint) {
        (Some(best), _) => best,
        (None, Some(hint)) if hint >= from && hint < lines.len() => (0, hint),
        (None, _) => {
            let first = old.first().copied().unwrap_or_default();
            return format!("the line `{}` is not in the rest of the file", quote(first));
        }
    };
    let expected = quote(old.get(agreed).copied().unwrap_or_default());
    match lines.get(at + agreed) {
        Some(_) => format!("line {} differs, expected `{expected}`", at + agreed + 1),
        None => format!("the file ends at line {}, expected `{expected}`", lines.len()),
    }
}

fn quote(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut quoted: String =
        text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).take(QUOTED).collect();
    if text.chars().nth(QUOTED).is_some() {
        quoted.push('…');
    }
    quoted
}
