//! Workspaces: below which directories a principal may work.

use palyra_common::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which directory, for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceGrantParams {
    /// The principal, such as `user:ci` or `uid:1000`; a bare name means a user of that name.
    pub principal: String,
    /// Absolute path of the directory.
    pub path: String,
}

/// All granted directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListWorkspacesResponse {
    /// By principal and path.
    pub workspaces: Vec<WorkspaceGrantView>,
}

/// A directory below which a principal may work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceGrantView {
    /// The principal; `*` stands for all of them.
    pub principal: String,
    /// The directory, without symbolic links.
    pub path: String,
    /// Who granted it; absent if the configuration did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_at: Option<Timestamp>,
}
