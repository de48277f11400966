//! Unified diffs, as `diff -u` and `git diff` write them and as models try to.
//!
//! The counts in a hunk's header delimit its body if they are right. If they are wrong, as in many a model's diff, the body
//! reaches to the next header instead; since old lines must match the file exactly, nothing is applied by mistake.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::ToolError;
use crate::patch::{Action, FilePatch, Hunk, HunkPlace, LineKind, PatchLines, hunk_ranges, malformed};
use crate::patch_envelope::{body_line, drop_trailing_blank_context};
use crate::workspace_path::escape;

/// Reads a unified diff of any number of files.
pub(crate) fn parse(lines: &PatchLines<'_>) -> Result<Vec<FilePatch>, ToolError> {
    let mut index = lines.first_of_substance().unwrap_or_default();
    let mut files = Vec::new();
    while let Some(line) = lines.header(index) {
        if line.starts_with("diff --git ") || begins_file(lines, index) {
            files.push(file(lines, &mut index)?);
        } else if line.starts_with("@@") {
            return Err(malformed(index, "a hunk without `---` and `+++` lines before it"));
        } else {
            // Prose around a diff (a commit message, `Index:` lines) is allowed.
            index += 1;
        }
    }
    if files.is_empty() {
        return Err(malformed(0, "no `--- a/file` and `+++ b/file` lines found"));
    }
    Ok(files)
}

/// Whether `--- old` and `+++ new` stand here.
fn begins_file(lines: &PatchLines<'_>, index: usize) -> bool {
    lines.get(index).is_some_and(|line| line.starts_with("--- "))
        && lines.get(index + 1).is_some_and(|line| line.starts_with("+++ "))
}

/// What the lines above the hunks say.
#[derive(Default)]
struct Header {
    git_name: Option<String>,
    /// `None` inside is `/dev/null`.
    old: Option<Option<String>>,
    new: Option<Option<String>>,
    rename: (Option<String>, Option<String>),
    mode: Option<u32>,
    created: bool,
    deleted: bool,
}

fn file(lines: &PatchLines<'_>, index: &mut usize) -> Result<FilePatch, ToolError> {
    let start = *index;
    let mut header = Header::default();
    read_header(lines, index, &mut header)?;
    let mut hunks = Vec::new();
    while lines.get(*index).is_some_and(|line| line.starts_with("@@")) {
        hunks.push(hunk(lines, index)?);
    }
    after_hunks(lines, index)?;
    to_file(header, hunks, start)
}

fn read_header(lines: &PatchLines<'_>, index: &mut usize, header: &mut Header) -> Result<(), ToolError> {
    if let Some(names) = lines.header(*index).and_then(|line| line.strip_prefix("diff --git ")) {
        header.git_name = git_name(names);
        *index += 1;
        while let Some(line) = lines.header(*index) {
            if begins_file(lines, *index) || line.starts_with("diff --git ") || line.starts_with("@@") {
                break;
            }
            if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(malformed(*index, "binary patches are not supported"));
            }
            let words = |prefix: &str| line.strip_prefix(prefix).map(str::trim);
            if let Some(mode) = words("new file mode ") {
                header.created = true;
                header.mode = permission_bits(mode);
            } else if words("deleted file mode ").is_some() {
                header.deleted = true;
            } else if let Some(mode) = words("new mode ") {
                header.mode = permission_bits(mode);
            } else if let Some(name) = words("rename from ") {
                header.rename.0 = Some(unquote(name));
            } else if let Some(name) = words("rename to ") {
                header.rename.1 = Some(unquote(name));
            } else if words("copy from ").is_some() {
                return Err(malformed(*index, "copies are not supported; add the new file instead"));
            }
            *index += 1;
        }
    }
    if begins_file(lines, *index) {
        let name = |at: usize, mark: &str| lines.header(at).and_then(|line| line.strip_prefix(mark)).map(file_name);
        header.old = name(*index, "--- ");
        header.new = name(*index + 1, "+++ ");
        *index += 2;
    }
    Ok(())
}

fn to_file(header: Header, hunks: Vec<Hunk>, start: usize) -> Result<FilePatch, ToolError> {
    let line = start + 1;
    let (old, new) = match (header.old, header.new) {
        (Some(old), Some(new)) => without_prefixes(old, new),
        _ => (header.git_name.clone().filter(|_| !header.created), header.git_name.filter(|_| !header.deleted)),
    };
    let (old, new) = match header.rename {
        (Some(from), Some(to)) => (Some(from), Some(to)),
        _ => (old, new),
    };
    let (path, action) = match (old, new) {
        (None, None) => return Err(malformed(start, "the file has no name")),
        (None, Some(path)) => (path, Action::Add { content: added(&hunks, start)?, mode: header.mode }),
        (Some(path), None) => (path, Action::Delete { hunks }),
        (Some(path), Some(new)) => {
            let move_to = (new != path).then_some(new);
            if hunks.is_empty() && move_to.is_none() && header.mode.is_none() {
                return Err(malformed(start, "this file is to be changed, but no hunk says how"));
            }
            (path, Action::Update { hunks, move_to, mode: header.mode })
        }
    };
    Ok(FilePatch { path, action, line })
}

/// The content of a new file: nothing but added lines.
fn added(hunks: &[Hunk], start: usize) -> Result<String, ToolError> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if line.kind != LineKind::New {
            return Err(malformed(start, "a new file can only have added lines"));
        }
        content.push_str(&line.text);
        content.push('\n');
    }
    if hunks.last().is_some_and(|hunk| hunk.new_ends_open) {
        content.pop();
    }
    Ok(content)
}

fn hunk(lines: &PatchLines<'_>, index: &mut usize) -> Result<Hunk, ToolError> {
    let ranges = lines.header(*index).and_then(hunk_ranges);
    let place = HunkPlace { line: ranges.map(|((line, _), _)| line), ..HunkPlace::default() };
    let body = *index + 1;
    let counted = ranges.and_then(|((_, old), (_, new))| counted_body(lines, body, old, new));
    let (mut hunk, end) = match counted {
        Some(found) => found,
        None => open_body(lines, body)?,
    };
    hunk.place = place;
    *index = end;
    Ok(hunk)
}

/// The body by its counts; `None` if it does not end where they say.
fn counted_body(lines: &PatchLines<'_>, start: usize, old: usize, new: usize) -> Option<(Hunk, usize)> {
    let mut hunk = Hunk::default();
    let (mut old, mut new, mut index) = (old, new, start);
    while old > 0 || new > 0 || lines.get(index).is_some_and(|line| line.starts_with('\\')) {
        let line = lines.get(index)?;
        index += 1;
        if line.starts_with('\\') {
            mark_open(&mut hunk);
            continue;
        }
        let line = body_line(line)?;
        match line.kind {
            LineKind::Context => (old, new) = (old.checked_sub(1)?, new.checked_sub(1)?),
            LineKind::Old => old = old.checked_sub(1)?,
            LineKind::New => new = new.checked_sub(1)?,
        }
        hunk.lines.push(line);
    }
    let goes_on = lines.get(index).is_some_and(|line| line.starts_with([' ', '+', '-']))
        && !begins_file(lines, index)
        && !is_signature(lines, index);
    if goes_on { None } else { Some((hunk, index)) }
}

/// The body up to whatever cannot belong to it.
fn open_body(lines: &PatchLines<'_>, start: usize) -> Result<(Hunk, usize), ToolError> {
    let mut hunk = Hunk::default();
    let mut index = start;
    while let Some(line) = lines.get(index) {
        let next = line.starts_with("@@") || line.starts_with("diff --git ") || line.starts_with("Index: ");
        if next || begins_file(lines, index) || is_signature(lines, index) {
            break;
        }
        if line.starts_with('\\') {
            mark_open(&mut hunk);
        } else {
            let line = body_line(line)
                .ok_or_else(|| malformed(index, "a line of a hunk must begin with a space, `-` or `+`"))?;
            hunk.lines.push(line);
        }
        index += 1;
    }
    drop_trailing_blank_context(&mut hunk.lines);
    if hunk.lines.is_empty() {
        return Err(malformed(start.saturating_sub(1), "this hunk is empty"));
    }
    Ok((hunk, index))
}

/// `\ No newline at end of file` speaks of the line before it.
fn mark_open(hunk: &mut Hunk) {
    let kind = hunk.lines.last().map(|line| line.kind);
    hunk.old_ends_open |= matches!(kind, Some(LineKind::Old | LineKind::Context));
    hunk.new_ends_open |= matches!(kind, Some(LineKind::New | LineKind::Context));
}

/// The `-- ` under a mailed patch, with the version of git below it.
fn is_signature(lines: &PatchLines<'_>, index: usize) -> bool {
    lines.header(index) == Some("-- ") && lines.get(index + 2).is_none_or(|line| line.trim().is_empty())
}

/// What follows the last hunk must be the next file or prose that cannot be mistaken for a part of a hunk.
fn after_hunks(lines: &PatchLines<'_>, index: &mut usize) -> Result<(), ToolError> {
    while let Some(line) = lines.header(*index) {
        if line.starts_with("diff --git ") || begins_file(lines, *index) {
            return Ok(());
        }
        if is_signature(lines, *index) {
            *index += 2;
        } else if line.trim().is_empty() || line.starts_with("Index: ") || line.starts_with("=====") {
            *index += 1;
        } else {
            return Err(malformed(
                *index,
                format!("`{}` belongs to no hunk", line.chars().take(60).collect::<String>()),
            ));
        }
    }
    Ok(())
}

/// The name after `---` or `+++`; `None` is `/dev/null`.
fn file_name(text: &str) -> Option<String> {
    let name = if text.starts_with('"') {
        unquote(text)
    } else {
        text.split('\t').next().unwrap_or(text).trim_end().to_owned()
    };
    (name != "/dev/null").then_some(name)
}

/// Drops git's `a/` and `b/`, which are there as a pair or not at all.
fn without_prefixes(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let fits = |name: &Option<String>, prefix: &str| name.as_ref().is_none_or(|name| name.starts_with(prefix));
    if !fits(&old, "a/") || !fits(&new, "b/") {
        return (old, new);
    }
    let strip = |name: Option<String>| name.and_then(|name| name.get(2..).map(str::to_owned));
    (strip(old), strip(new))
}

/// The name in `a/NAME b/NAME`, when both are the same.
fn git_name(names: &str) -> Option<String> {
    let middle = names.len() / 2;
    let (left, right) = names.split_at_checked(middle)?;
    let (left, right) = (unquote(left.trim()), unquote(right.trim()));
    let (left, right) = (left.strip_prefix("a/")?, right.strip_prefix("b/")?);
    (left == right).then(|| left.to_owned())
}

fn permission_bits(mode: &str) -> Option<u32> {
    u32::from_str_radix(mode, 8).ok().map(|mode| mode & 0o777)
}

/// Undoes git's quoting of unusual names, into the workspace's own escapes.
fn unquote(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.split_once('"').map(|_| rest)) else {
        return text.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail) {
            (b'"', _) => break,
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            (b'\\', [escaped, after @ ..]) => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                });
                rest = after;
            }
            _ => bytes.push(byte),
        }
    }
    escape(&OsString::from_vec(bytes))
}
