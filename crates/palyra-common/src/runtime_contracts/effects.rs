//! What an effect touches, in the words that tools declare and policies judge.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How far an effect reaches. Ordered: a greater value reaches further.
    pub enum EffectScope("effect_scope") {
        /// Nothing outside the call.
        Pure = "pure",
        /// Reads files of the workspace or what the run itself stored.
        WorkspaceRead = "workspace_read",
        /// Changes files of the workspace.
        WorkspaceWrite = "workspace_write",
        /// Anything beyond the workspace.
        External = "external",
    }
}

runtime_contract_enum! {
    /// What an argument decides, for the rules on where its value may come from.
    pub enum SinkKind("sink_kind") {
        /// Where something goes: a host, a recipient, an account.
        Destination = "destination",
        /// What is executed.
        Command = "command",
        /// Which file is touched.
        Path = "path",
        /// What opens a door.
        Credential = "credential",
        /// How much.
        Amount = "amount",
        /// What is written or sent.
        Content = "content",
    }
}
