//! With what credential a run was asked for, as far as that matters later: where it may work, and who may not answer its approvals.

use serde::{Deserialize, Serialize};

palyra_common::runtime_contract_enum! {
    /// On what authority a run opens its workspace.
    #[derive(Default)]
    pub enum WorkspaceAuthority("workspace_authority") {
        /// The owner at the machine itself, who works in any directory of theirs.
        LocalOwner = "local_owner",
        /// Somebody with roots that were granted to them.
        #[default]
        Granted = "granted",
        /// Somebody who may only have conversations: directories that the daemon made for them.
        Conversation = "conversation",
    }
}

/// The credential behind a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartedWith {
    /// Where the run may work.
    pub workspace: WorkspaceAuthority,
    /// What a program holds, by its public name; absent for a person's own credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// Somebody who acts on a run, and the credential they do it with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// Who.
    pub by: String,
    /// With what.
    pub with: StartedWith,
}

impl WorkspaceAuthority {
    /// The one of two that reaches less far.
    pub(crate) fn narrower(self, other: Self) -> Self {
        let reach = |authority| match authority {
            Self::Conversation => 0,
            Self::Granted => 1,
            Self::LocalOwner => 2,
        };
        if reach(self) <= reach(other) { self } else { other }
    }
}

impl StartedWith {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
