//! What is known about the files of a workspace beyond what the file system says: labels of contents and names that runs wrote.
//!
//! Whoever opens a [`Workspace`] for a run hands it a [`FileLabels`]. Every reading of a file goes through [`Workspace::examine`], so no tool and no reference can
//! forget to ask.

use std::fmt;
use std::io::{Seek as _, SeekFrom};
use std::sync::Arc;

use palyra_common::{Digest, Label};

use crate::cancel::Cancel;
use crate::workspace::OpenFile;
use crate::{ToolError, Workspace, WorkspacePath};

/// Knows the labels of what runs wrote.
pub trait FileLabels: fmt::Debug + Send + Sync {
    /// Whether nothing has a label, so that nothing need be looked up.
    fn is_empty(&self) -> bool;

    /// The label of a content, wherever it lies.
    fn of_content(&self, content: &Digest) -> Option<Label>;

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
        let label = self.label(path, open.owner());
        if self.labels.is_empty() {
            return Ok(Examined { label, digest: None });
        }
        let rewind = |open: &mut OpenFile| {
            open.file.seek(SeekFrom::Start(0)).map_err(|error| ToolError::io(&path.to_string(), error))
        };
        rewind(open)?;
        let digest = open.digest(cancel)?;
        rewind(open)?;
        let known = self.labels.of_content(&digest);
        Ok(Examined { label: known.map_or(label.clone(), |known| label.join(&known)), digest: Some(digest) })
    }

    /// The label of a name in the workspace, if it says anything against it.
    pub(crate) fn label_of_name(&self, path: &WorkspacePath) -> Option<Label> {
        if self.labels.is_empty() {
            return None;
        }
        self.labels.of_name(&format!("{}/{path}", self.root().display()))
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
        joined
    }

    /// A file under its one name, with the digest of what it holds; blocks.
    ///
    /// # Errors
    /// When there is no such file in the workspace.
    pub fn content_of(&self, path: &str) -> Result<(WorkspacePath, Digest), ToolError> {
        let path = self.resolve(&self.path(path)?)?;
        let digest = self.open_file(&path)?.digest(&Cancel::never())?;
        Ok((path, digest))
    }

    fn label_at(&self, place: &str) -> Result<Option<Label>, ToolError> {
        let path = self.path(place)?;
        let digest = self.open_file(&path)?.digest(&Cancel::never())?;
        let found = self.labels.of_content(&digest).into_iter().chain(self.label_of_name(&path));
        Ok(found.reduce(|one, other| one.join(&other)))
    }
}
