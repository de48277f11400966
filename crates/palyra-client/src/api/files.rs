//! Files: which contents are not trusted, and a person's word for one.

use palyra_common::{Confidentiality, Digest, Integrity, RunId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which labelled files to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFileLabelsParams {
    /// In this workspace and below it only, an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Contents of files that are not trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListFileLabelsResponse {
    /// Where they were written, oldest first.
    pub files: Vec<FileLabelView>,
    /// Files of the given workspace that are instructions, and whether a run that began now would follow them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<InstructionFileView>,
    /// Why everything in the given workspace is taken for somebody else's, to follow the word "it"; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
}

/// A file of a workspace that is meant as instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionFileView {
    /// The path in the workspace.
    pub path: String,
    /// What it holds; absent if it is too large to be followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Why it is not followed; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// A content that a person answers for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndorsedFileView {
    /// The workspace in which they looked.
    pub workspace: String,
    /// The path in it.
    pub path: String,
    /// The content; it is endorsed wherever it lies.
    pub digest: Digest,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A content that a run wrote and that is worth less than other files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLabelView {
    /// The workspace.
    pub workspace: String,
    /// The path in it.
    pub path: String,
    /// The content; it has the label wherever it lies.
    pub digest: Digest,
    /// How far it may be trusted.
    pub integrity: Integrity,
    /// How widely it may be shown.
    pub confidentiality: Confidentiality,
    /// What it was made from.
    pub sources: Vec<String>,
    /// The run that wrote it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The call that wrote it last.
    pub call_id: String,
    /// When.
    pub at: Timestamp,
    /// The record of the journal that says so.
    pub record: u64,
}

/// A person's word for the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndorseFileParams {
    /// The workspace, an absolute path.
    pub workspace: String,
    /// The file, absolute or relative to the workspace.
    pub path: String,
    /// The digest of what the person looked at; anything else is refused.
    pub digest: Digest,
}
