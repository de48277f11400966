//! What a search found: collected per file while searching, sorted and worded at the end.

use std::fmt::Write as _;
use std::io;

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use palyra_common::Label;
use serde_json::json;

use crate::input::bounded;
use crate::{Artifacts, ToolError, ToolLimits, ToolOutput, WorkspacePath};

/// Longest line shown, in characters: minified files have lines of megabytes.
const LINE_CHARACTERS: usize = 500;

/// One line of a result.
struct Line {
    number: u64,
    text: String,
    /// Whether it matched, or stands near a match.
    matched: bool,
}

/// The hits of one file while it is searched.
pub(crate) struct Hits {
    limit: usize,
    lines: Vec<Line>,
    count: usize,
    bytes: usize,
    pub(crate) binary: bool,
}

/// The hits of one file.
pub(crate) struct FileHits {
    path: WorkspacePath,
    pub(crate) label: Label,
    lines: Vec<Line>,
    /// All matching lines, kept or not.
    pub(crate) count: usize,
    /// Memory the kept lines take.
    pub(crate) bytes: usize,
}

impl Hits {
    /// Keeps the first `limit` matches and counts the others.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, lines: Vec::new(), count: 0, bytes: 0, binary: false }
    }

    pub(crate) fn into_file(self, path: WorkspacePath, label: Label) -> FileHits {
        FileHits { path, label, lines: self.lines, count: self.count, bytes: self.bytes }
    }

    fn keep(&mut self, number: Option<u64>, bytes: &[u8], matched: bool) {
        if self.count > self.limit {
            return;
        }
        // Cut before decoding: four bytes are enough for any character.
        let head = bytes.get(..LINE_CHARACTERS * 4).unwrap_or(bytes);
        let decoded = String::from_utf8_lossy(head);
        let line = decoded.trim_end_matches(['\n', '\r']);
        let mut text: String = line.chars().take(LINE_CHARACTERS).collect();
        if text.len() < line.len() || head.len() < bytes.len() {
            text.push('…');
        }
        self.bytes += text.len() + size_of::<Line>();
        self.lines.push(Line { number: number.unwrap_or(0), text, matched });
    }
}

impl Sink for Hits {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.count += 1;
        self.keep(found.line_number(), found.bytes(), true);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.keep(found.line_number(), found.bytes(), false);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), io::Error> {
        self.binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Everything a search found.
pub(crate) struct Report {
    pub(crate) start: WorkspacePath,
    pub(crate) start_excluded: bool,
    pub(crate) files: Vec<FileHits>,
    pub(crate) searched: usize,
    pub(crate) binary: usize,
    pub(crate) unreadable: usize,
    /// Whether the search stopped because it had found more than anybody reads.
    pub(crate) stopped: bool,
    pub(crate) limit: usize,
    pub(crate) context: usize,
}

impl Report {
    pub(crate) fn output(
        mut self,
        label: Label,
        limits: &ToolLimits,
        artifacts: &dyn Artifacts,
    ) -> Result<ToolOutput, ToolError> {
        self.files.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        let total: usize = self.files.iter().map(|file| file.count).sum();
        let mut lines = String::new();
        let mut label = label.from_source(format!("directory:{}", self.start));
        let mut left = self.limit;
        for file in &self.files {
            if left == 0 {
                break;
            }
            label = label.join(&file.label);
            self.write_file(file, &mut left, &mut lines);
        }
        let shown = self.limit - left;
        self.write_notes(total, shown, &mut lines);
        let data = json!({
            "matches": total,
            "shown": shown,
            "files_with_matches": self.files.len(),
            "files_searched": self.searched,
            "binary_files": self.binary,
            "unreadable": self.unreadable,
            "complete": !self.stopped,
        });
        let output = bounded(lines, label, limits, artifacts)?.with_data(data);
        Ok(ToolOutput { truncated: output.truncated || shown < total || self.stopped, ..output })
    }

    fn write_file(&self, file: &FileHits, left: &mut usize, lines: &mut String) {
        let mut previous: Option<u64> = None;
        for line in &file.lines {
            if line.matched {
                if *left == 0 {
                    return;
                }
                *left -= 1;
            }
            let gap = previous.is_none_or(|previous| line.number != previous + 1);
            if self.context > 0 && gap && !lines.is_empty() {
                lines.push_str("--\n");
            }
            previous = Some(line.number);
            let mark = if line.matched { ':' } else { '-' };
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{}{mark}{}{mark}{}", file.path, line.number, line.text);
        }
    }

    fn write_notes(&self, total: usize, shown: usize, lines: &mut String) {
        // Writing to a string cannot fail.
        if self.start_excluded {
            let _ = writeln!(lines, "[ignore files exclude `{}`; search it with ignored true]", self.start);
        } else if total == 0 {
            let _ = writeln!(lines, "[no match in {} files]", self.searched);
        } else if self.stopped {
            let _ =
                writeln!(lines, "[too many matches: {shown} shown, the search stopped; narrow the pattern or path]");
        } else if shown < total {
            let _ = writeln!(lines, "[{shown} of {total} matching lines shown; narrow the pattern or raise limit]");
        }
        if self.unreadable > 0 {
            let _ = writeln!(lines, "[{} files or directories could not be read]", self.unreadable);
        }
    }
}
