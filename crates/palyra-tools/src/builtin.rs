//! The list of built-in tools.

use std::sync::Arc;

use crate::Tool;
use crate::artifact_read::ArtifactRead;
use crate::fs_apply_patch::FsApplyPatch;
use crate::fs_edit::FsEdit;
use crate::fs_list::FsList;
use crate::fs_read::FsRead;
use crate::fs_search::FsSearch;
use crate::fs_write::FsWrite;
use crate::time_now::TimeNow;

/// All built-in tools.
#[must_use]
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ArtifactRead::new()),
        Arc::new(FsApplyPatch::new()),
        Arc::new(FsEdit::new()),
        Arc::new(FsList::new()),
        Arc::new(FsRead::new()),
        Arc::new(FsSearch::new()),
        Arc::new(FsWrite::new()),
        Arc::new(TimeNow::new()),
    ]
}
