//! The commands of the Agent Control Protocol.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// What a control client may ask for. Reading also accepts the names without dots, such as `SessionNew`.
    pub enum AcpCommand("acp_command") {
        /// Start a session.
        SessionNew = "session.new",
        /// List sessions.
        SessionList = "session.list",
        /// Read a session with its history.
        SessionLoad = "session.load",
        /// Go on with a session.
        SessionResume = "session.resume",
        /// Start a session from a point in another.
        SessionFork = "session.fork",
        /// Send a session's events again.
        SessionReplay = "session.replay",
        /// Say how a session came to be as it is.
        SessionExplain = "session.explain",
        /// Change how untrusted results are treated.
        SessionModeSet = "session.mode.set",
        /// Change a session's settings.
        SessionConfigSet = "session.config.set",
        /// Show what compaction would keep.
        SessionCompactPreview = "session.compact.preview",
        /// Compact the history.
        SessionCompactApply = "session.compact.apply",
        /// Start a run.
        RunCreate = "run.create",
        /// Stop a run.
        RunAbort = "run.abort",
        /// List approvals.
        ApprovalList = "approval.list",
        /// Ask for an approval.
        ApprovalRequest = "approval.request",
        /// Answer an approval.
        ApprovalDecide = "approval.decide",
        /// List bindings of channels and agents.
        BindingList = "binding.list",
        /// Create or change a binding.
        BindingSet = "binding.set",
        /// Remove a binding.
        BindingRemove = "binding.remove",
        /// Take up a broken connection.
        Reconnect = "reconnect",
    }
}
