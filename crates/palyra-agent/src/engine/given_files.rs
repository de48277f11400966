//! Files that were handed over with a task, as they enter its context.
//!
//! They lie in the artifact store, under their digests. As with `@file:` references a text is shown up to a limit and an image is looked at; a file that is neither
//! refuses the run, since the model could make nothing of it.

use palyra_common::{Confidentiality, DataOrigin, Digest, Integrity, Label};
use palyra_journal::ArtifactStore;
use palyra_tools::{FileLabels, ToolError};

use super::files::{Attachment, FoundImage, MAX_FILE_BYTES, push};
use super::images;
use crate::auxiliary::{MAX_IMAGE_BYTES, image_media_type, image_part};
use crate::error::AgentError;
use crate::spec::ContextItem;

/// A file that was handed over with a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// What it is called.
    pub name: String,
    /// Where its bytes are.
    pub artifact: Digest,
}

/// Adds the files to what the task refers to, each once; blocks.
pub(super) fn add(
    artifacts: &ArtifactStore,
    labels: &dyn FileLabels,
    given: Vec<GivenFile>,
    found: &mut Vec<Attachment>,
) -> Result<(), AgentError> {
    for GivenFile { name, artifact } in given {
        // Nothing larger can be shown whole, and a text is cut far below.
        let bytes = artifacts.get_range(&artifact, 0, MAX_IMAGE_BYTES + 1)?;
        let source = unused(format!("attachment {name}"), found);
        let attachment = take(source, bytes, labels.of_content(&artifact).as_ref())?;
        push(found, attachment)?;
    }
    Ok(())
}

/// Two files may have one name.
fn unused(source: String, found: &[Attachment]) -> String {
    let is_used = |wanted: &str| found.iter().any(|attachment| attachment.source() == wanted);
    if !is_used(&source) {
        return source;
    }
    (2..).map(|n| format!("{source} ({n})")).find(|other| !is_used(other)).unwrap_or(source)
}

fn take(source: String, bytes: Vec<u8>, known: Option<&Label>) -> Result<Attachment, AgentError> {
    // Whoever hands a file over need not have written it: it is believed as far as a file of the workspace.
    let label = Label::new(Integrity::ToolTrusted, Confidentiality::Private).of_origin(DataOrigin::Workspace);
    let label = label.from_source(source.clone());
    let label = known.map_or_else(|| label.clone(), |known| label.join(known));
    if image_media_type(&bytes).is_some() {
        return match image_part(&source, &bytes) {
            Some(part) => Ok(Attachment::Image(FoundImage { source, bytes, part, label })),
            None => Err(images::refused(&source, format!("has more than {MAX_IMAGE_BYTES} bytes"))),
        };
    }
    match text(&bytes) {
        Some(text) => Ok(Attachment::Text(ContextItem { source, text, label, image: None })),
        None => {
            let error = ToolError::BinaryFile { path: source.clone() };
            Err(AgentError::BadReference { path: source, source: error })
        }
    }
}

/// The beginning of a text, cut between two characters.
fn text(bytes: &[u8]) -> Option<String> {
    let shown = bytes.get(..MAX_FILE_BYTES).unwrap_or(bytes);
    let whole = shown.len() == bytes.len();
    let valid = match std::str::from_utf8(shown) {
        Ok(text) => text,
        Err(error) if !whole && error.error_len().is_none() => {
            shown.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok())?
        }
        Err(_) => return None,
    };
    if valid.contains('\0') {
        return None;
    }
    let rest = if whole { "" } else { "\n[the rest of this file is not shown]" };
    Some(format!("{valid}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters_and_other_bytes_are_no_text() {
        assert_eq!(text(b"short").as_deref(), Some("short"));
        let long = format!("{}\u{e9}tail", "x".repeat(MAX_FILE_BYTES - 1));
        let shown = text(long.as_bytes()).unwrap();
        assert_eq!(shown.split('\n').next().unwrap().len(), MAX_FILE_BYTES - 1);
        assert!(shown.ends_with("not shown]"));
        assert_eq!(text(b"a\0b"), None);
        assert_eq!(text(&[b'a', 0xC3]), None, "cut by its sender, not here");
    }
}
