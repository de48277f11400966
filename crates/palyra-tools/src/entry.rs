//! What stands at a path, beside the content and mode of a regular file.

use palyra_common::runtime_contract_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

runtime_contract_enum! {
    /// What stands at a path.
    pub enum EntryKind("entry_kind") {
        /// A regular file.
        File = "file",
        /// A symbolic link; its content is where it leads.
        Link = "link",
        /// A directory by itself; its content is empty.
        Directory = "directory",
        /// A directory of build products or packages with all that is in it, which are not told one by one; its content is empty.
        Tree = "tree",
        /// A named pipe, a socket or a device; its content is empty.
        Other = "other",
    }
}

impl EntryKind {
    /// Whether content and mode say all that there is to say.
    #[must_use]
    pub fn is_file(&self) -> bool {
        *self == Self::File
    }
}

/// What a change is about where it is more, or something else, than the content of a regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryFacts {
    /// What was there before, if anything was.
    #[serde(default = "file", skip_serializing_if = "EntryKind::is_file")]
    pub before: EntryKind,
    /// What is there now, if anything is.
    #[serde(default = "file", skip_serializing_if = "EntryKind::is_file")]
    pub after: EntryKind,
    /// Another name that the file had before (a hard link).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_to: Option<String>,
    /// Whether it lies among build products or packages that ignore files exclude: who builds again changes it, and that is nobody's loss.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebuilt: bool,
}

fn file() -> EntryKind {
    EntryKind::File
}

impl Default for EntryFacts {
    fn default() -> Self {
        Self { before: EntryKind::File, after: EntryKind::File, linked_to: None, rebuilt: false }
    }
}

impl EntryFacts {
    /// Whether the change is about the content and mode of a regular file and nothing else.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}
