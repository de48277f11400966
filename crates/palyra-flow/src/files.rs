//! Labels of files: what a call writes is worth no more than what it was made from.
//!
//! A file is known by its content. [`Written::of`] says what a call that changed files has to leave on record, so that whoever reads these bytes later, in any run, gets
//! their label back. Contents whose label says nothing against them are not recorded: almost all are such, and looking them up is to cost nothing.

use std::collections::BTreeMap;

use palyra_common::{Confidentiality, DataOrigin, Digest, Integrity, Label};
use serde::{Deserialize, Serialize};

/// Whether a label is worse than that of an ordinary file of the workspace: people are told, and can endorse what it is about.
#[must_use]
pub fn is_worse_than_a_file(label: &Label) -> bool {
    label.integrity > Integrity::ToolTrusted
        || label.confidentiality > Confidentiality::Private
        || label.readers.is_some()
}

/// Whether a label has to be remembered with what it belongs to: it is worse than that of an ordinary file, or says that data of another place is in it.
#[must_use]
pub fn differs_from_a_file(label: &Label) -> bool {
    is_worse_than_a_file(label) || label.origins.iter().any(is_elsewhere)
}

/// Whether data of this place says something of a file that holds it: what a server gave stays the server's, also where no text of it was seen.
const fn is_elsewhere(origin: &DataOrigin) -> bool {
    match origin {
        DataOrigin::User | DataOrigin::Operator | DataOrigin::Workspace => false,
        DataOrigin::Server(_) | DataOrigin::Skill(_) | DataOrigin::Host(_) | DataOrigin::Unknown => true,
    }
}

/// One file that a call changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WrittenFile<'a> {
    /// Its path in the workspace.
    pub path: &'a str,
    /// What it held before; `None` if there was no file.
    pub before: Option<Digest>,
    /// What it holds now; `None` if there is no file.
    pub after: Option<Digest>,
    /// The label of what it held before by the place where it lies, if that says anything against it.
    pub place: Option<&'a Label>,
}

impl WrittenFile<'_> {
    fn is_gone(&self) -> bool {
        self.after.is_none()
    }
}

/// Whether what a file held before can be part of what it holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewrite {
    /// The call says everything that the file holds now.
    Whole,
    /// Nobody knows how much was kept.
    MayKeep,
}

/// The labels of what a call wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The workspace, absolute and without links.
    pub workspace: String,
    /// The label of every file that the call wrote.
    pub label: Label,
    /// By path, what a file has beyond that from what it, or a file that it may have replaced, held before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, Label>,
}

impl Written {
    /// What has to be recorded about a call that was made from `given`; nothing if all it wrote is as good as any file. `known` tells the label of a content.
    #[must_use]
    pub fn of(
        workspace: &str,
        given: Label,
        files: &[WrittenFile<'_>],
        rewrite: Rewrite,
        known: impl Fn(&Digest) -> Option<Label>,
    ) -> Option<Self> {
        let mut kept = BTreeMap::new();
        if rewrite == Rewrite::MayKeep {
            // A file that was moved and edited at once is a removal and a new file.
            let was = |file: &WrittenFile<'_>| {
                let by_content = file.before.as_ref().and_then(&known);
                by_content.into_iter().chain(file.place.cloned()).reduce(|one, other| one.join(&other))
            };
            let gone = files.iter().filter(|file| file.is_gone()).filter_map(was);
            let gone = gone.reduce(|one, other| one.join(&other));
            for file in files.iter().filter(|file| !file.is_gone()) {
                let before = if file.before.is_some() { was(file) } else { gone.clone() };
                kept.extend(before.map(|label| (file.path.to_owned(), label)));
            }
        }
        let is_anything_there = files.iter().any(|file| !file.is_gone());
        let worth_telling = differs_from_a_file(&given) || !kept.is_empty();
        (is_anything_there && worth_telling).then(|| Self { workspace: workspace.to_owned(), label: given, kept })
    }

    /// The label of one of the files, if it says anything against it.
    #[must_use]
    pub fn label_of(&self, path: &str) -> Option<Label> {
        let label = self.kept.get(path).map_or_else(|| self.label.clone(), |kept| self.label.join(kept));
        differs_from_a_file(&label).then_some(label)
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
