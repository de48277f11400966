//! `palyra.fs.read`: a range of a text file, streamed, so that the size of the file does not matter.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cancel::{self, Cancel};
use crate::file_labels::Examined;
use crate::input::{parse, text};
use crate::workspace::CHUNK;
use crate::{
    CallResource, EffectScope, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput,
    Workspace, WorkspacePath,
};

/// Lines given when the call does not say how many.
const DEFAULT_LINES: u64 = 2_000;
/// How much of the beginning is searched for a NUL byte, which text does not have.
const SNIFFED: usize = 8 << 10;
/// Room kept for the note at the end.
const NOTE: usize = 512;

/// Reads a text file, or a range of its lines. The note at the end of a part says how to go on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FsReadInput {
    /// File to read.
    path: String,
    /// First line, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Lines to read; 2000 by default.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// First byte, instead of `offset`.
    #[serde(default)]
    byte_offset: Option<u64>,
    /// Number the lines. Not together with `byte_offset`.
    #[serde(default)]
    #[schemars(extend("x-rare" = true))]
    line_numbers: Option<bool>,
    /// Also return the digest of the whole file, which palyra.fs.write takes as `expected_digest`.
    #[serde(default)]
    #[schemars(extend("x-rare" = true))]
    digest: Option<bool>,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct FsRead(ToolDeclaration);

impl FsRead {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.fs.read");
        Self(
            ToolDeclaration::of::<FsReadInput>(name, "Read file", "read `{path}`")
                .reads(EffectScope::WorkspaceRead)
                .sink("path", SinkKind::Path)
                .labelling_results()
                .showing_inline()
                .output(Integrity::ToolTrusted, Confidentiality::Private)
                .offered(Offering::Always),
        )
    }

    fn check(&self, input: &FsReadInput) -> Result<(), ToolError> {
        let wrong = |field, message: &str| Err(ToolError::argument(self.0.name.as_str(), field, "invalid", message));
        if input.byte_offset.is_some() && input.offset.is_some() {
            return wrong("byte_offset", "`offset` and `byte_offset` cannot be given together");
        }
        if input.byte_offset.is_some() && input.line_numbers == Some(true) {
            return wrong("line_numbers", "line numbers are not known when reading from a `byte_offset`");
        }
        if input.offset == Some(0) || input.limit == Some(0) {
            return wrong("offset", "`offset` and `limit` count from 1");
        }
        Ok(())
    }
}

#[async_trait]
impl Tool for FsRead {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, workspace: &Workspace) -> Result<CallResource, ToolError> {
        workspace.named(text(arguments, "path").unwrap_or_default()).map(CallResource::file)
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let input: FsReadInput = parse(&self.0.name, arguments.clone())?;
        workspace.path(&input.path).map(drop)
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input: FsReadInput = parse(&self.0.name, invocation.arguments)?;
        self.check(&input)?;
        let workspace: Arc<Workspace> = invocation.workspace;
        let cap = invocation.limits.inline_bytes.saturating_sub(NOTE);
        cancel::read(&invocation.cancel, move |cancel| read(&workspace, &input, cap, cancel)).await
    }
}

fn read(workspace: &Workspace, input: &FsReadInput, cap: usize, cancel: &Cancel) -> Result<ToolOutput, ToolError> {
    let path = workspace.path(&input.path)?;
    let mut open = workspace.open_file(&path)?;
    let Examined { label, digest: known } = workspace.examine(&path, &mut open, cancel)?;
    let size = open.size();
    let refuse = |error| workspace.refuse(&path, error);

    let mut head = Vec::with_capacity(SNIFFED);
    (&mut open.file).take(SNIFFED as u64).read_to_end(&mut head).map_err(refuse)?;
    if head.contains(&0) {
        return Err(ToolError::BinaryFile { path: path.to_string() });
    }
    let digest = match known {
        _ if input.digest != Some(true) => None,
        Some(known) => Some(known),
        None => {
            open.file.seek(SeekFrom::Start(0)).map_err(refuse)?;
            Some(open.digest(cancel)?)
        }
    };

    let first_line = input.offset.unwrap_or(1);
    open.file.seek(SeekFrom::Start(input.byte_offset.unwrap_or(0))).map_err(refuse)?;
    let mut reader = Lines {
        path: &path,
        reader: BufReader::with_capacity(CHUNK, open.file),
        position: input.byte_offset.unwrap_or(0),
        cancel,
    };
    if input.byte_offset.is_some() {
        reader.skip_to_character()?;
    }
    let skipped = reader.skip_lines(first_line - 1)?;
    let start = reader.position;
    let raw = reader.gather(input.limit.unwrap_or(DEFAULT_LINES), cap)?;
    let text = as_text(&path, &raw.bytes, start, raw.more)?;
    let numbered = (input.line_numbers == Some(true)).then_some(first_line);
    let shown = render(text, numbered, cap);

    let next_byte = start + shown.taken as u64;
    let more = raw.more || shown.taken < raw.bytes.len();
    let by_line = input.byte_offset.is_none() && shown.whole_lines;
    let next_line = (more && by_line).then_some(first_line + shown.lines);
    let mut content = shown.text;
    let note = if more {
        let by_line = next_line.map_or_else(String::new, |line| format!("offset {line} or "));
        Some(format!("[{} of {size} bytes shown; continue with {by_line}byte_offset {next_byte}]", shown.taken))
    } else if size == 0 {
        Some("[the file is empty]".to_owned())
    } else if shown.taken == 0 && input.byte_offset.is_none() {
        Some(format!("[the file ends after {skipped} lines]"))
    } else if shown.taken == 0 {
        Some(format!("[the file ends at byte {size}]"))
    } else {
        None
    };
    if let Some(note) = note {
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        content.push_str(&note);
    }
    if let Some(digest) = &digest {
        let separator = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
        content.push_str(&format!("{separator}[digest {digest}]"));
    }
    let data = json!({
        "path": path.to_string(),
        "bytes": size,
        "lines": shown.lines,
        "first_line": input.byte_offset.is_none().then_some(first_line),
        "next_offset": next_line,
        "next_byte_offset": more.then_some(next_byte),
        "digest": digest,
    });
    Ok(ToolOutput { truncated: more, ..ToolOutput::text(content, label).with_data(data) })
}

/// A file read forward, with its position and a look at the token for every chunk.
struct Lines<'a> {
    path: &'a WorkspacePath,
    reader: BufReader<File>,
    position: u64,
    cancel: &'a Cancel,
}

/// Bytes of whole lines, or of the beginning of one that is too long.
struct Raw {
    bytes: Vec<u8>,
    /// Whether the file goes on.
    more: bool,
}

impl Lines<'_> {
    fn fill(&mut self) -> Result<&[u8], ToolError> {
        self.cancel.check()?;
        self.reader.fill_buf().map_err(|error| ToolError::io(&self.path.to_string(), error))
    }

    fn consume(&mut self, count: usize) {
        self.reader.consume(count);
        self.position += count as u64;
    }

    /// Leaves the middle of a character, where a guessed byte offset may lead.
    fn skip_to_character(&mut self) -> Result<(), ToolError> {
        let inside = self.fill()?.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
        self.consume(inside);
        Ok(())
    }

    /// Skips whole lines; how many there were, if the file ends first.
    fn skip_lines(&mut self, wanted: u64) -> Result<u64, ToolError> {
        let mut skipped = 0;
        let mut inside_line = false;
        while skipped < wanted {
            let chunk = self.fill()?;
            let Some(last) = chunk.last().copied() else {
                return Ok(skipped + u64::from(inside_line));
            };
            let ends = chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
            if skipped + ends < wanted {
                let length = chunk.len();
                skipped += ends;
                inside_line = last != b'\n';
                self.consume(length);
                continue;
            }
            let mut left = wanted - skipped;
            let end = chunk.iter().position(|byte| {
                left -= u64::from(*byte == b'\n');
                left == 0
            });
            self.consume(end.map_or(0, |end| end + 1));
            skipped = wanted;
        }
        Ok(skipped)
    }

    /// Up to `lines` lines, and not more than a little above `cap` bytes.
    fn gather(&mut self, lines: u64, cap: usize) -> Result<Raw, ToolError> {
        let mut bytes = Vec::new();
        let mut left = lines;
        while left > 0 && bytes.len() <= cap {
            let chunk = self.fill()?;
            if chunk.is_empty() {
                return Ok(Raw { bytes, more: false });
            }
            let end = chunk.iter().position(|byte| {
                left -= u64::from(*byte == b'\n');
                left == 0
            });
            let taken = chunk.get(..end.map_or(chunk.len(), |end| end + 1)).unwrap_or_default();
            bytes.extend_from_slice(taken);
            let count = taken.len();
            self.consume(count);
        }
        let more = !self.fill()?.is_empty();
        Ok(Raw { bytes, more })
    }
}

/// The bytes as text; a character cut off where the gathering stopped is left for the next call.
fn as_text<'a>(path: &WorkspacePath, bytes: &'a [u8], start: u64, more: bool) -> Result<&'a str, ToolError> {
    if bytes.contains(&0) {
        return Err(ToolError::BinaryFile { path: path.to_string() });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) if error.error_len().is_none() && more => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            Ok(std::str::from_utf8(valid).unwrap_or_default())
        }
        Err(error) => Err(ToolError::NotUtf8 { path: path.to_string(), position: start + error.valid_up_to() as u64 }),
    }
}

/// What goes to the model, and how much of the input it stands for.
struct Shown {
    text: String,
    taken: usize,
    lines: u64,
    whole_lines: bool,
}

fn render(text: &str, mut number: Option<u64>, cap: usize) -> Shown {
    let mut shown = Shown { text: String::new(), taken: 0, lines: 0, whole_lines: true };
    for line in text.split_inclusive('\n') {
        let prefix = number.map_or_else(String::new, |number| format!("{number:>6}\t"));
        let room = cap.saturating_sub(shown.text.len() + prefix.len());
        if line.len() > room && shown.lines > 0 {
            break;
        }
        let fitting = line.get(..line.floor_char_boundary(room)).unwrap_or_default();
        shown.text.push_str(&prefix);
        shown.text.push_str(fitting);
        shown.taken += fitting.len();
        shown.lines += 1;
        shown.whole_lines = fitting.len() == line.len() && line.ends_with('\n');
        number = number.map(|number| number + 1);
        if fitting.len() < line.len() {
            break;
        }
    }
    shown
}
