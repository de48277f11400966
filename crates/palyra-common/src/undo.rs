//! What undoing a run does with files that are not, or not only, what the run made of them.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// What undo does when some of the files conflict: somebody changed them since, or while a call of the run was active.
    #[derive(Default)]
    pub enum UndoConflictMode("undo_conflict_mode") {
        /// Nothing is undone, and the conflicting files are named.
        #[default]
        Refuse = "refuse",
        /// Conflicting files stay as they are, and the others are undone.
        Skip = "skip",
        /// Conflicting files are undone, too. What they held is kept as an artifact.
        Overwrite = "overwrite",
    }
}

runtime_contract_enum! {
    /// Why undo left a file as it is.
    pub enum UndoObstacle("undo_obstacle") {
        /// It was not among the files to undo.
        NotSelected = "not_selected",
        /// It no longer is as the run left it.
        ChangedSince = "changed_since",
        /// Somebody else changed it during the run, or may have.
        ChangedByOthers = "changed_by_others",
        /// What is at its path, or must be there for a file that stays, cannot be replaced by it.
        CannotReplace = "cannot_replace",
        /// Its content from before the run is not kept any more.
        ContentMissing = "content_missing",
    }
}

impl UndoObstacle {
    /// Whether the file was to be undone and was not.
    #[must_use]
    pub const fn is_conflict(self) -> bool {
        !matches!(self, Self::NotSelected)
    }
}
