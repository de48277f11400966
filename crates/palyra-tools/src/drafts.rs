//! Files as they will be: the edits of one call, worked out in memory before anything is touched.
//!
//! Each file is loaded once, under its real path (links resolved), so that two spellings of one file are one draft. Turning the
//! drafts into a [`Plan`] stores the before-images as artifacts; only the effect store changes files.

use std::collections::BTreeMap;

use palyra_common::{ChangeAttribution, Digest};
use serde_json::Value;

use crate::effects::{Content, NewContent, Plan, Receipt};
use crate::{Artifacts, EntryFacts, FileChange, ToolError, Workspace, WorkspacePath};

/// A file before and as it will be; `None` is no file.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    before: Option<Vec<u8>>,
    before_mode: Option<u32>,
    pub(crate) now: Option<Vec<u8>>,
    pub(crate) mode: Option<u32>,
}

/// The drafts of one call.
pub(crate) struct Drafts<'a> {
    workspace: &'a Workspace,
    /// Largest file that is taken or made.
    limit: u64,
    /// How much may still be loaded: the files of one call together fit in memory.
    room: u64,
    files: BTreeMap<WorkspacePath, Draft>,
}

impl<'a> Drafts<'a> {
    pub(crate) fn new(workspace: &'a Workspace, limit: u64) -> Self {
        Self { workspace, limit, room: limit.saturating_mul(4), files: BTreeMap::new() }
    }

    /// The draft of a file, loaded on first use.
    pub(crate) fn get(&mut self, path: &WorkspacePath) -> Result<&mut Draft, ToolError> {
        let real = self.workspace.resolve(path)?;
        if !self.files.contains_key(&real) {
            let draft = self.load(&real)?;
            self.files.insert(real.clone(), draft);
        }
        self.files.get_mut(&real).ok_or_else(|| ToolError::Internal("a draft vanished".to_owned()))
    }

    fn load(&mut self, path: &WorkspacePath) -> Result<Draft, ToolError> {
        match self.workspace.open_file(path) {
            Ok(file) => {
                let mode = Some(file.mode());
                let bytes = file.read_whole(self.limit.min(self.room))?;
                self.room = self.room.saturating_sub(bytes.len() as u64);
                let bytes = Some(bytes);
                Ok(Draft { before: bytes.clone(), before_mode: mode, now: bytes, mode })
            }
            Err(ToolError::PathNotFound { .. }) => Ok(Draft { before: None, before_mode: None, now: None, mode: None }),
            Err(error) => Err(error),
        }
    }

    /// Every file that will differ: before-images are stored, then `report` words the receipt from the changes.
    pub(crate) fn into_plan(
        self,
        artifacts: &dyn Artifacts,
        report: impl FnOnce(&[FileChange]) -> (String, Value),
    ) -> Result<Plan, ToolError> {
        self.no_file_is_also_a_directory()?;
        let mut made = Vec::new();
        let mut changes = Vec::new();
        let mut contents = Vec::new();
        for (path, draft) in self.files {
            if draft.before == draft.now && (draft.now.is_none() || draft.before_mode == draft.mode) {
                continue;
            }
            if let Some(bytes) = draft.now.as_ref().filter(|bytes| bytes.len() as u64 > self.limit) {
                let bytes = bytes.len() as u64;
                return Err(ToolError::FileTooLarge { path: path.to_string(), bytes, limit: self.limit });
            }
            let directories = match (&draft.before, &draft.now) {
                (None, Some(_)) => missing_directories(self.workspace, &path, &mut made)?,
                _ => Vec::new(),
            };
            changes.push(FileChange {
                path: path.to_string(),
                before: draft.before.as_deref().map(|bytes| artifacts.put(bytes)).transpose()?,
                after: draft.now.as_deref().map(Digest::of),
                before_mode: draft.before_mode,
                directories,
                attribution: ChangeAttribution::Written,
                entry: EntryFacts::default(),
            });
            contents.push(NewContent { content: draft.now.map(Content::Bytes), mode: draft.mode });
        }
        let (content, data) = report(&changes);
        Ok(Plan { receipt: Receipt { content, data, changes }, contents })
    }

    /// `a` and `a/b` cannot both be files.
    fn no_file_is_also_a_directory(&self) -> Result<(), ToolError> {
        let kept: Vec<_> = self.files.iter().filter(|(_, draft)| draft.now.is_some()).map(|(path, _)| path).collect();
        for path in &kept {
            let mut above = path.parent();
            while let Some(parent) = above.filter(|parent| !parent.is_root()) {
                if kept.binary_search(&&parent).is_ok() {
                    return Err(ToolError::PathNotDirectory { path: parent.to_string() });
                }
                above = parent.parent();
            }
        }
        Ok(())
    }
}

/// The directories that must be made for a file, outermost first, without those that an earlier file of the call needs too.
fn missing_directories(
    workspace: &Workspace,
    path: &WorkspacePath,
    made: &mut Vec<WorkspacePath>,
) -> Result<Vec<String>, ToolError> {
    let mut missing = Vec::new();
    let mut above = path.parent();
    while let Some(parent) = above.filter(|parent| !parent.is_root() && !made.contains(parent)) {
        match workspace.metadata(&parent) {
            Ok(found) if found.is_dir() => break,
            Ok(_) => return Err(ToolError::PathNotDirectory { path: parent.to_string() }),
            Err(ToolError::PathNotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        above = parent.parent();
        missing.push(parent);
    }
    missing.reverse();
    let names = missing.iter().map(ToString::to_string).collect();
    made.extend(missing);
    Ok(names)
}
