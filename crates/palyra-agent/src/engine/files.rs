//! Files that enter a context because a message refers to them. Project files are in `instructions.rs`.
//!
//! They are read once, when the run is accepted, and are part of its specification from then on.

use palyra_common::Label;
use palyra_models::Part;
use palyra_tools::{FileBytes, TextPrefix, ToolError, Workspace};

use super::images;
use crate::auxiliary::{MAX_IMAGE_BYTES, image_media_type, image_part};
use crate::error::AgentError;
use crate::spec::ContextItem;

/// Bytes of one file that enter a context; more is cut off with a note.
pub(super) const MAX_FILE_BYTES: usize = 64 * 1024;
/// References that one message may carry.
const MAX_REFERENCES: usize = 16;
/// Images that one message may carry: all of them go with every call of the run.
const MAX_IMAGES: usize = 4;
const MARK: &str = "@file:";

/// What a message refers to.
#[derive(Debug)]
pub(super) enum Attachment {
    /// A text.
    Text(ContextItem),
    /// An image, which somebody has to look at.
    Image(FoundImage),
}

/// An image of the workspace.
#[derive(Debug)]
pub(super) struct FoundImage {
    pub(super) source: String,
    pub(super) bytes: Vec<u8>,
    pub(super) part: Part,
    pub(super) label: Label,
}

impl Attachment {
    pub(super) fn source(&self) -> &str {
        match self {
            Self::Text(item) => &item.source,
            Self::Image(image) => &image.source,
        }
    }
}

/// Whether a message may refer to files at all.
pub(super) fn has_references(text: &str) -> bool {
    text.contains(MARK)
}

/// The files a message refers to, in order, each once.
pub(super) fn references(workspace: &Workspace, text: &str) -> Result<Vec<Attachment>, AgentError> {
    let mut found: Vec<Attachment> = Vec::new();
    for path in reference_paths(text).into_iter().take(MAX_REFERENCES) {
        if found.iter().any(|attachment| attachment.source() == path) {
            continue;
        }
        let attachment = match read(workspace, &path) {
            Ok(item) => Attachment::Text(item),
            Err(source @ ToolError::BinaryFile { .. }) => match image(workspace, &path)? {
                Some(image) => Attachment::Image(image),
                None => return Err(AgentError::BadReference { path, source }),
            },
            Err(source) => return Err(AgentError::BadReference { path, source }),
        };
        push(&mut found, attachment)?;
    }
    Ok(found)
}

/// Adds one to the others, unless there would be too many images.
pub(super) fn push(found: &mut Vec<Attachment>, attachment: Attachment) -> Result<(), AgentError> {
    found.push(attachment);
    if found.iter().filter(|attachment| matches!(attachment, Attachment::Image(_))).count() > MAX_IMAGES {
        let path = found.last().map(Attachment::source).unwrap_or_default();
        return Err(images::refused(path, format!("a task may refer to {MAX_IMAGES} images")));
    }
    Ok(())
}

/// The image at a path, if it is one that models can look at.
fn image(workspace: &Workspace, path: &str) -> Result<Option<FoundImage>, AgentError> {
    let bad = |source| AgentError::BadReference { path: path.to_owned(), source };
    let FileBytes { bytes, whole, label } = workspace.read_bytes(path, MAX_IMAGE_BYTES).map_err(bad)?;
    if image_media_type(&bytes).is_none() {
        return Ok(None);
    }
    match image_part(path, &bytes) {
        Some(part) if whole => Ok(Some(FoundImage { source: path.to_owned(), bytes, part, label })),
        _ => Err(images::refused(path, format!("has more than {MAX_IMAGE_BYTES} bytes"))),
    }
}

fn read(workspace: &Workspace, path: &str) -> Result<ContextItem, ToolError> {
    let TextPrefix { mut text, whole, label } = workspace.read_text_prefix(path, MAX_FILE_BYTES)?;
    if !whole {
        text.push_str("\n[the rest of this file is not shown; palyra.fs.read reads on]");
    }
    Ok(ContextItem { source: path.to_owned(), text, label, image: None })
}

/// Paths after `@file:`, bare up to white space or in double quotes. Punctuation that ends a sentence does not belong to a path.
fn reference_paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(MARK) {
        let (path, next) = match after.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((path, next)) => (path, next),
            None => {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                let (path, next) = after.split_at(end);
                (path.trim_end_matches([',', ';', ':', '!', '?', ')', '.']), next)
            }
        };
        if !path.is_empty() {
            paths.push(path.to_owned());
        }
        rest = next;
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_end_at_white_space_quotes_or_closing_punctuation() {
        let text = "compare @file:a.txt, @file:\"b c.md\" and (@file:d/e.rs). @file: nothing";
        assert_eq!(reference_paths(text), ["a.txt", "b c.md", "d/e.rs"]);
        assert!(reference_paths("no references, not even @files").is_empty());
    }
}
