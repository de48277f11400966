//! Changes in directories that are filled again: nothing of them is copied, so all that can be said is that they changed.
//!
//! No state is kept for this. The time of the last status change, which programs cannot set, tells whether something is as it was when the checkpoint was begun.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use super::Checkpoint;
use super::idle::TICK;
use super::look::Present;
use super::stamp::last_change;
use crate::cancel::Cancel;
use crate::walk::{Flow, Found, Include, Walk};
use crate::{ToolError, Workspace, WorkspacePath};

/// Entries that are looked at altogether: directories of build products and packages hold very many.
const ENTRIES: usize = 20_000;

/// Whether something in an excluded directory changed.
enum Verdict {
    Changed,
    AsBefore,
    TooMany,
}

impl Checkpoint {
    /// One line for everything excluded that changed.
    pub(super) fn excluded_changes(
        &self,
        workspace: &Workspace,
        present: &Present,
        cancel: &Cancel,
    ) -> Result<Vec<String>, ToolError> {
        let left = AtomicUsize::new(ENTRIES);
        let mut lines = Vec::new();
        for path in present.skipped.iter().filter(|path| self.was_unseen(path)) {
            match self.verdict(workspace, path, &left, cancel)? {
                Verdict::AsBefore => {}
                Verdict::Changed => lines.push(format!("`{path}` changed, which is filled again and was not copied")),
                Verdict::TooMany => lines.push(format!(
                    "changes in `{path}`, which is filled again and was not copied, and has too many entries to look at"
                )),
            }
        }
        let here = |path: &&WorkspacePath| {
            present.skipped.contains(*path)
                || present.files.contains_key(*path)
                || present.directories.contains_key(*path)
                || present.others.contains_key(*path)
                || present.is_hidden(path)
        };
        for path in self.unseen.iter().filter(|path| !here(path)) {
            // Too many files to look at is another reason not to have seen one, so it is asked for by its name.
            let gone = workspace.dir().symlink_metadata(path.as_path());
            if gone.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                lines.push(format!("`{path}`, which was not copied before, is gone"));
            }
        }
        Ok(lines)
    }

    fn verdict(
        &self,
        workspace: &Workspace,
        path: &WorkspacePath,
        left: &AtomicUsize,
        cancel: &Cancel,
    ) -> Result<Verdict, ToolError> {
        let begun = self.begun;
        let is_new = move |moment: SystemTime| moment + TICK >= begun;
        let Ok(metadata) = workspace.dir().symlink_metadata(path.as_path()) else { return Ok(Verdict::AsBefore) };
        if is_new(last_change(&metadata)) {
            return Ok(Verdict::Changed);
        }
        if !metadata.is_dir() {
            return Ok(Verdict::AsBefore);
        }
        let changed = AtomicBool::new(false);
        let enters = |_: &Found| true;
        let walk =
            Walk { start: path.clone(), ignored: Include::Yes, ..Walk::whole(workspace, cancel).covering_all(&enters) };
        walk.run(|| {
            |found: &Found| {
                if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
                    return Flow::Stop;
                }
                let metadata = found.directory.symlink_metadata(&found.name);
                if metadata.is_ok_and(|metadata| is_new(last_change(&metadata))) {
                    changed.store(true, Ordering::Relaxed);
                    return Flow::Stop;
                }
                Flow::Continue
            }
        })?;
        Ok(match changed.into_inner() {
            true => Verdict::Changed,
            false if left.load(Ordering::Relaxed) == 0 => Verdict::TooMany,
            false => Verdict::AsBefore,
        })
    }
}
