//! The patch notation that models commonly write:
//!
//! ```text
//! *** Begin Patch
//! *** Update File: src/a.rs
//! *** Move to: src/b.rs
//! @@ fn main()
//!  context
//! -old
//! +new
//! *** Add File: c.txt
//! +line
//! *** Delete File: d.txt
//! *** End Patch
//! ```
//!
//! Hunks are found by their lines; `@@` names a line that comes before, several of them narrow down step by step.

use crate::ToolError;
use crate::patch::{Action, FilePatch, Hunk, HunkLine, HunkPlace, LineKind, PatchLines, hunk_ranges, malformed};

/// Reads an envelope.
pub(crate) fn parse(lines: &PatchLines<'_>) -> Result<Vec<FilePatch>, ToolError> {
    let mut index = lines.first_of_substance().unwrap_or_default();
    if lines.header(index).map(str::trim) != Some("*** Begin Patch") {
        return Err(malformed(index, "expected `*** Begin Patch`"));
    }
    index += 1;
    let mut files = Vec::new();
    loop {
        let Some(line) = lines.header(index) else {
            return Err(malformed(index, "`*** End Patch` is missing; the patch seems to be cut off"));
        };
        let start = index;
        index += 1;
        if line.trim().is_empty() {
            continue;
        }
        if line.trim() == "*** End Patch" {
            break;
        }
        let (path, action) = if let Some(path) = line.strip_prefix("*** Add File:") {
            (path, add(lines, &mut index)?)
        } else if let Some(path) = line.strip_prefix("*** Delete File:") {
            (path, Action::Delete { hunks: Vec::new() })
        } else if let Some(path) = line.strip_prefix("*** Update File:") {
            (path, update(lines, &mut index, start)?)
        } else {
            return Err(malformed(
                start,
                "expected `*** Add File:`, `*** Update File:`, `*** Delete File:` or `*** End Patch`",
            ));
        };
        files.push(FilePatch { path: name(path, start)?, action, line: start + 1 });
    }
    match (index..).map_while(|index| Some((index, lines.get(index)?))).find(|(_, line)| !line.trim().is_empty()) {
        Some((index, _)) => Err(malformed(index, "nothing may follow `*** End Patch`")),
        None => Ok(files),
    }
}

fn name(text: &str, index: usize) -> Result<String, ToolError> {
    let name = text.trim();
    if name.is_empty() { Err(malformed(index, "the file has no name")) } else { Ok(name.to_owned()) }
}

fn is_section(line: &str) -> bool {
    ["*** Add File:", "*** Delete File:", "*** Update File:", "*** End Patch"].iter().any(|mark| line.starts_with(mark))
}

fn add(lines: &PatchLines<'_>, index: &mut usize) -> Result<Action, ToolError> {
    let mut content = String::new();
    while let Some(line) = lines.get(*index).filter(|line| !is_section(line)) {
        match line.strip_prefix('+') {
            Some(text) => {
                content.push_str(text);
                content.push('\n');
            }
            None if blank_until_section(lines, *index) => {}
            None => return Err(malformed(*index, "a line of a new file must begin with `+`")),
        }
        *index += 1;
    }
    Ok(Action::Add { content, mode: None })
}

fn blank_until_section(lines: &PatchLines<'_>, from: usize) -> bool {
    (from..).map_while(|index| lines.get(index)).take_while(|line| !is_section(line)).all(|line| line.trim().is_empty())
}

fn update(lines: &PatchLines<'_>, index: &mut usize, start: usize) -> Result<Action, ToolError> {
    let mut move_to = None;
    if let Some(target) = lines.header(*index).and_then(|line| line.strip_prefix("*** Move to:")) {
        move_to = Some(name(target, *index)?);
        *index += 1;
    }
    let mut hunks = Vec::new();
    while let Some(line) = lines.get(*index).filter(|line| !is_section(line)) {
        if line.trim().is_empty() && blank_until_section(lines, *index) {
            *index += 1;
            continue;
        }
        hunks.push(hunk(lines, index)?);
    }
    if hunks.is_empty() && move_to.is_none() {
        return Err(malformed(start, "this file is to be updated, but no hunk says how"));
    }
    Ok(Action::Update { hunks, move_to, mode: None })
}

fn hunk(lines: &PatchLines<'_>, index: &mut usize) -> Result<Hunk, ToolError> {
    let start = *index;
    let mut place = HunkPlace::default();
    while let Some(header) = lines.header(*index).filter(|line| line.starts_with("@@")) {
        if let Some(((line, _), _)) = hunk_ranges(header) {
            place.line = Some(line);
        } else {
            let anchor = header.trim_start_matches('@').trim().trim_end_matches("@@").trim();
            if !anchor.is_empty() {
                place.anchors.push(anchor.to_owned());
            }
        }
        *index += 1;
    }
    let mut body = Vec::new();
    while let Some(line) = lines.get(*index) {
        if line.starts_with("@@") || is_section(line) {
            break;
        }
        if line.trim_end() == "*** End of File" {
            place.at_end = true;
            *index += 1;
            break;
        }
        body.push(
            body_line(line).ok_or_else(|| malformed(*index, "a line of a hunk must begin with a space, `-` or `+`"))?,
        );
        *index += 1;
    }
    drop_trailing_blank_context(&mut body);
    if !body.iter().any(|line| line.kind != LineKind::Context) {
        return Err(malformed(start, "this hunk changes nothing"));
    }
    Ok(Hunk { place, lines: body, ..Hunk::default() })
}

/// One line of a hunk; an empty one is context whose space was lost on the way.
pub(crate) fn body_line(line: &str) -> Option<HunkLine> {
    let (kind, text) = match line.as_bytes().first() {
        None => (LineKind::Context, ""),
        Some(b' ') => (LineKind::Context, line.get(1..)?),
        Some(b'-') => (LineKind::Old, line.get(1..)?),
        Some(b'+') => (LineKind::New, line.get(1..)?),
        Some(_) => return None,
    };
    Some(HunkLine { kind, text: text.to_owned() })
}

/// Blank lines before the next section separate; they are not content to look for.
pub(crate) fn drop_trailing_blank_context(body: &mut Vec<HunkLine>) {
    while body.last().is_some_and(|line| line.kind == LineKind::Context && line.text.is_empty()) {
        body.pop();
    }
}
