//! Surfaces: where people meet Palyra, and how they move from one to another.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// Where something was seen or done.
    pub enum TelemetrySurface("telemetry_surface") {
        /// The console in a browser.
        Web = "web",
        /// The desktop application.
        Desktop = "desktop",
        /// The terminal interface.
        Tui = "tui",
        /// The command line.
        Cli = "cli",
        /// A telephone.
        Mobile = "mobile",
    }
}

runtime_contract_enum! {
    /// What a person means to do on the other surface.
    pub enum HandoffIntent("handoff_intent") {
        /// Answer an approval.
        Approve = "approve",
        /// Go on with a session.
        ResumeSession = "resume-session",
        /// Open a canvas again.
        ReopenCanvas = "reopen-canvas",
        /// Look at a run.
        InspectRun = "inspect-run",
        /// Look at who may do what.
        InspectAccess = "inspect-access",
        /// Look at health and logs.
        InspectDiagnostics = "inspect-diagnostics",
        /// Open the workspace.
        OpenWorkspace = "open-workspace",
    }
}

runtime_contract_enum! {
    /// The part of a console that a handoff leads to.
    pub enum HandoffSection("handoff_section") {
        /// Conversations.
        Chat = "chat",
        /// Open and past approvals.
        Approvals = "approvals",
        /// Runs and their tapes.
        Runs = "runs",
        /// What is remembered.
        Memory = "memory",
        /// Installed skills.
        Skills = "skills",
        /// Scheduled work.
        Routines = "routines",
        /// Long-lived goals.
        Objectives = "objectives",
        /// Policies and their tests.
        Policy = "policy",
        /// The journal.
        Audit = "audit",
        /// Paired devices.
        Devices = "devices",
        /// The fleet.
        Workers = "workers",
        /// Browser sessions.
        Browser = "browser",
        /// Configuration.
        Settings = "settings",
    }
}

runtime_contract_enum! {
    /// How something a person tried on a surface ended.
    pub enum UxOutcome("ux_outcome") {
        /// It worked.
        Ok = "ok",
        /// Something stood in the way.
        Blocked = "blocked",
        /// It failed.
        Error = "error",
        /// The person gave up.
        Cancelled = "cancelled",
    }
}
