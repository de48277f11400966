//! Project files: text of the workspace that is followed like the operator's own word, as long as a person answers for it.
//!
//! Whoever can put a file into a workspace could otherwise steer every run in it: the author of a clone or a dependency, and a run that has read an attacker's text. So what
//! such a file says counts only while exactly its content is endorsed. Nothing about the file itself, its owner or its place makes up for that.

use palyra_common::{Confidentiality, DataOrigin, Digest, Integrity, Label};
use palyra_flow::is_worse_than_a_file;
use palyra_tools::{FileBytes, FileLabels as _, Workspace};
use serde::{Deserialize, Serialize};

use super::file_labels::FileLabelBook;
use super::files::MAX_FILE_BYTES;
use crate::spec::ContextItem;

/// A larger file is no instruction that anybody has read before they endorsed it.
const MAX_BYTES: usize = 1 << 20;

/// A project file that is not followed. It can be read like any other file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldInstructions {
    /// Its path in the workspace.
    pub path: String,
    /// Why, in a few words of Palyra's own.
    pub why: String,
}

/// A project file, as a run that began now would treat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path in the workspace.
    pub path: String,
    /// What it holds; nothing if it is too large to be followed.
    pub digest: Option<Digest>,
    /// Why it is not followed, if it is not.
    pub withheld: Option<String>,
}

/// Project files that exist and say anything, in the configured order; the text of those that are followed. Blocks.
pub(super) fn project_files(
    workspace: &Workspace,
    book: &FileLabelBook,
    names: &[String],
) -> Vec<(ProjectFile, Option<ContextItem>)> {
    names.iter().filter_map(|name| project_file(workspace, book, name)).collect()
}

fn project_file(workspace: &Workspace, book: &FileLabelBook, name: &str) -> Option<(ProjectFile, Option<ContextItem>)> {
    let FileBytes { bytes, whole, .. } = workspace.read_bytes(name, MAX_BYTES).ok()?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let withheld = |digest, why: &str| {
        let file = ProjectFile { path: name.to_owned(), digest, withheld: Some(why.to_owned()) };
        Some((file, None))
    };
    if !whole {
        return withheld(None, "it has more than 1 MiB");
    }
    // INVARIANT: what is followed is what was hashed. Nothing is read again.
    let digest = Digest::of(&bytes);
    if !book.is_endorsed(&digest) {
        let place = format!("{}/{name}", workspace.root().display());
        let why = match book.of_content(&digest) {
            Some(label) if label.integrity == Integrity::Untrusted => "a run made it from untrusted text",
            _ if book.was_endorsed(&place) => "it has changed since it was endorsed",
            _ => "nobody has endorsed it",
        };
        return withheld(Some(digest), why);
    }
    // Whoever endorsed it made it the operator's word, wherever it goes.
    let label = Label::new(Integrity::ToolTrusted, Confidentiality::Private).of_origin(DataOrigin::Operator);
    let label = label.from_source(format!("file:{name}"));
    let label = book.of_content(&digest).map_or(label.clone(), |known| label.join(&known));
    if is_worse_than_a_file(&label) {
        return withheld(Some(digest), "it is more confidential than a file");
    }
    let text = shown(bytes)?;
    let file = ProjectFile { path: name.to_owned(), digest: Some(digest), withheld: None };
    Some((file, Some(ContextItem { source: name.to_owned(), text, label, image: None })))
}

/// As much of a text as enters a context; nothing if it is no text.
fn shown(bytes: Vec<u8>) -> Option<String> {
    let mut text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    if text.len() > MAX_FILE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_FILE_BYTES));
        text.push_str("\n[the rest of this file is not shown; palyra.fs.read reads on]");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_bytes_are_no_text() {
        let long = shown(format!("{}\u{e9}tail", "x".repeat(MAX_FILE_BYTES - 1)).into_bytes()).unwrap();
        assert_eq!(long.split('\n').next().unwrap().len(), MAX_FILE_BYTES - 1);
        assert_eq!(shown(b"short".to_vec()).as_deref(), Some("short"));
        assert_eq!((shown(b"a\0b".to_vec()), shown(vec![0xFF])), (None, None));
    }
}
