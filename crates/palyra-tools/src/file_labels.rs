//! What is known about the files of a workspace beyond what the file system says: labels of contents and names that runs wrote.
//!
//! Whoever opens a [`Workspace`] for a run hands it a [`FileLabels`]. Every reading of a file goes through [`Workspace::examine`], so no tool and no reference can
//! forget to ask.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use palyra_common::{Confidentiality, DataOrigin, Digest, Integrity, Label};

use crate::cancel::Cancel;
use crate::workspace::OpenFile;
use crate::{ToolError, Workspace, WorkspacePath};

/// Knows the labels of what runs wrote.
pub trait FileLabels: fmt::Debug + Send + Sync {
    /// Whether nothing has a label, so that nothing need be looked up.
    fn is_empty(&self) -> bool;

    /// The label of a content, wherever it lies.
    fn of_content(&self, content: &Digest) -> Option<Label>;

    /// Whether a person may have endorsed a content of so many bytes; almost every other need not be looked up.
    fn may_be_endorsed(&self, bytes: u64) -> bool;

    /// Whether a person endorsed a content.
    fn is_endorsed(&self, content: &Digest) -> bool;

    /// The label of a name, by absolute path in its escaped text form: whoever made a file chose what it is called.
    fn of_name(&self, path: &str) -> Option<Label>;

    /// Where labelled contents were written below a directory: each path relative to it, with the label of all that was written there.
    fn places_below(&self, directory: &str) -> Vec<(String, Label)>;
}

/// Nothing is known: for work that is no run's.
#[derive(Debug)]
struct NothingKnown;

impl FileLabels for NothingKnown {
    fn is_empty(&self) -> bool {
        true
    }
    fn of_content(&self, _: &Digest) -> Option<Label> {
        None
    }
    fn may_be_endorsed(&self, _: u64) -> bool {
        false
    }
    fn is_endorsed(&self, _: &Digest) -> bool {
        false
    }
    fn of_name(&self, _: &str) -> Option<Label> {
        None
    }
    fn places_below(&self, _: &str) -> Vec<(String, Label)> {
        Vec::new()
    }
}

/// What a workspace knows if nobody says more.
pub(crate) fn nothing_known() -> Arc<dyn FileLabels> {
    Arc::new(NothingKnown)
}

/// What was found out about an open file.
pub(crate) struct Examined {
    /// How far it may be trusted and shown, all of it and any part.
    pub(crate) label: Label,
    /// The digest of the whole, if it had to be known for that.
    pub(crate) digest: Option<Digest>,
}

impl Workspace {
    /// The same workspace with what is known about its files.
    #[must_use]
    pub fn with_labels(mut self, labels: Arc<dyn FileLabels>) -> Self {
        self.labels = labels;
        self
    }

    /// How far the content of an open file may be trusted; leaves it at its beginning.
    pub(crate) fn examine(
        &self,
        path: &WorkspacePath,
        open: &mut OpenFile,
        cancel: &Cancel,
    ) -> Result<Examined, ToolError> {
        let mut label = self.label(path, open);
        let is_foreign = label.integrity == Integrity::Untrusted;
        if self.labels.is_empty() && !(is_foreign && self.labels.may_be_endorsed(open.size())) {
            return Ok(Examined { label, digest: None });
        }
        let rewind = |open: &mut OpenFile| {
            open.file.seek(SeekFrom::Start(0)).map_err(|error| ToolError::io(&path.to_string(), error))
        };
        rewind(open)?;
        let digest = open.digest(cancel)?;
        rewind(open)?;
        if is_foreign && self.labels.is_endorsed(&digest) {
            label.integrity = Integrity::ToolTrusted;
        }
        let known = self.labels.of_content(&digest);
        Ok(Examined { label: known.map_or(label.clone(), |known| label.join(&known)), digest: Some(digest) })
    }

    /// The labels of names in the workspace, as far as they say anything against them: a run made the file, or it lies among somebody else's.
    pub(crate) fn label_of_names<'a>(&self, paths: impl Iterator<Item = &'a WorkspacePath>) -> Option<Label> {
        let mut directories = BTreeMap::new();
        let mut joined: Option<Label> = None;
        for path in paths {
            let directory = path.parent().unwrap_or_else(WorkspacePath::root);
            let is_foreign =
                *directories.entry(directory.clone()).or_insert_with(|| self.whose_directory(&directory).is_some());
            let foreign = is_foreign.then(|| foreign(format!("directory:{directory}")));
            let found = foreign.into_iter().chain(self.label_of_written_name(path));
            joined = joined.into_iter().chain(found).reduce(|one, other| one.join(&other));
        }
        joined
    }

    /// The label of a name that a run chose.
    pub(crate) fn label_of_written_name(&self, path: &WorkspacePath) -> Option<Label> {
        if self.labels.is_empty() {
            return None;
        }
        self.labels.of_name(&format!("{}/{path}", self.root().display()))
    }

    /// The labels of places, by the facts about their directories alone, where those say anything against what lies or lay there; blocks.
    #[must_use]
    pub fn labels_of_places<'a>(&self, paths: impl Iterator<Item = &'a str>) -> BTreeMap<String, Label> {
        let mut directories = BTreeMap::new();
        let mut labels = BTreeMap::new();
        for text in paths {
            let Ok(path) = self.path(text) else { continue };
            let given = path.parent().unwrap_or_else(WorkspacePath::root);
            let is_foreign = *directories.entry(given.clone()).or_insert_with(|| {
                let directory = self.resolve(&given).unwrap_or_else(|_| given.clone());
                self.whose_directory(&directory).is_some()
            });
            if is_foreign {
                labels.insert(text.to_owned(), foreign(format!("file:{path}")));
            }
        }
        labels
    }

    /// The label of a content by what runs wrote.
    pub(crate) fn label_of_known(&self, content: &Digest) -> Option<Label> {
        self.labels.of_content(content)
    }

    /// The label of instructions that an absolute path leads to, if it says anything against following them. In the workspace, where runs and whoever made its files can
    /// write, only a person's endorsement speaks for them; elsewhere they are the operator's unless a run made them from something worse.
    #[must_use]
    pub fn label_of_instructions(&self, path: &Path, bytes: &[u8]) -> Option<Label> {
        let digest = Digest::of(bytes);
        let known = self.labels.of_content(&digest);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let unendorsed = real.starts_with(self.root()) && !self.labels.is_endorsed(&digest);
        let foreign = unendorsed.then(|| foreign(format!("file:{}", path.display())));
        known.into_iter().chain(foreign).reduce(|one, other| one.join(&other))
    }

    /// Whether a person endorsed what a file holds now; blocks.
    pub(crate) fn is_endorsed_at(&self, path: &WorkspacePath) -> bool {
        let Ok(mut open) = self.open_file(path) else { return false };
        self.labels.may_be_endorsed(open.size())
            && open.digest(&Cancel::never()).is_ok_and(|digest| self.labels.is_endorsed(&digest))
    }

    /// The labels of what lies in the workspace now, of which a program may read everything; blocks.
    #[must_use]
    pub fn labels_within(&self) -> Option<Label> {
        let mut joined: Option<Label> = None;
        for (place, written) in self.labels.places_below(&self.root().display().to_string()) {
            let found = match self.label_at(&place) {
                Ok(found) => found,
                Err(ToolError::PathNotFound { .. }) => None,
                Err(error) if error.is_not_a_file() => None,
                // What lies there cannot be told, so it is taken for what was written there.
                Err(_) => Some(written),
            };
            joined = joined.into_iter().chain(found).reduce(|one, other| one.join(&other));
        }
        let foreign = self.foreign_within().map(|_| foreign(format!("directory:{}", WorkspacePath::root())));
        joined.into_iter().chain(foreign).reduce(|one, other| one.join(&other))
    }

    /// A file under its one name, with the digest of what it holds and how many bytes that is; blocks.
    ///
    /// # Errors
    /// When there is no such file in the workspace.
    pub fn content_of(&self, path: &str) -> Result<(WorkspacePath, Digest, u64), ToolError> {
        let path = self.resolve(&self.path(path)?)?;
        let mut open = self.open_file(&path)?;
        let digest = open.digest(&Cancel::never())?;
        Ok((path, digest, open.size()))
    }

    fn label_at(&self, place: &str) -> Result<Option<Label>, ToolError> {
        let path = self.path(place)?;
        let digest = self.open_file(&path)?.digest(&Cancel::never())?;
        let found = self.labels.of_content(&digest).into_iter().chain(self.label_of_written_name(&path));
        Ok(found.reduce(|one, other| one.join(&other)))
    }
}

/// The label of what somebody else wrote.
fn foreign(source: String) -> Label {
    let label = Label::new(Integrity::Untrusted, Confidentiality::Private).from_source(source);
    label.of_origin(DataOrigin::Workspace)
}
